/*
 * What a MonetDB server gives to a module, as far as it is used: declared here, so
 * that no header of MonetDB is needed. The layout of the tables that a module
 * registers differs between releases; `layout` says which one a version has.
 */
#ifndef TIQUE_MAL_H
#define TIQUE_MAL_H

#include <stdint.h>

typedef int64_t lng;
#define LNG_NULL INT64_MIN

#define MAL_COMMAND 1 /* called with plain arguments */
#define MAL_UNSAFE 2  /* has effects: called exactly as often as written */
#define MAL_RETURNS(n) ((n) << 2)
#define MAL_ARGUMENTS(n) ((n) << 8) /* the results among them */

struct mal_argument {
	char type[15];
	uint8_t flags;
};

/* MonetDB 11.41 */
struct mal_function_41 {
	char module[14];
	char name[30];
	const char *implementation_name;
	uint16_t flags;
	void *implementation;
	const struct mal_argument *arguments;
};

/* MonetDB 11.45 */
struct mal_function_45 {
	char module[16];
	char name[30];
	const char *implementation_name;
	uint16_t flags;
	const char *comment;
	void *implementation;
	const struct mal_argument *arguments;
};

_Static_assert(sizeof(struct mal_argument) == 16, "layout");
_Static_assert(sizeof(struct mal_function_41) == 80, "layout");
_Static_assert(sizeof(struct mal_function_45) == 88, "layout");

extern const char *GDKversion(void);
extern int GDKexiting(void);
extern char *GDKstrdup(const char *text);
extern void mal_module(const char *name, void *atoms, void *functions);

#endif
