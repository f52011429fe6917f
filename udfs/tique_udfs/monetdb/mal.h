/*
 * The part of a MonetDB server's interface for modules that is used: declared here, so
 * that no header of MonetDB is needed.
 *
 * A module can also hand the server a table of its functions, but the layout of that
 * table is another one in nearly every release. melFunction is the same in all.
 */
#ifndef TIQUE_MAL_H
#define TIQUE_MAL_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t lng;
#define LNG_NULL INT64_MIN

#define MAL_COMMAND true /* called with pointers to the result and the arguments */
#define MAL_UNSAFE true  /* has effects: called exactly as often as written */

/* A type by its number in the server; the other bits are for values of no one type. */
struct mal_type {
	uint16_t number : 8;
	uint16_t polymorphic : 8;
};

_Static_assert(sizeof(struct mal_type) == 2, "layout");

extern const char *GDKversion(void);
extern bool GDKexiting(void);
extern char *GDKstrdup(const char *text);
extern int ATOMindex(const char *type);

/* The server calls `start` once it knows all types; that is when to register. */
extern void mal_module2(const char *name, void *atoms, void *functions,
                        char *(*start)(void), const char *code);

/* The types are the results' and then the parameters', `count` of them together. */
extern int melFunction(bool command, const char *module, const char *name,
                       void *implementation, const char *implementation_name,
                       bool unsafe, const char *comment, int results, int count,
                       ...);

#endif
