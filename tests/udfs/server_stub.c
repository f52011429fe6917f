/*
 * A server's side of the module, of the version that the first argument names: opens
 * the library that the second one names, starts it if it asked to be started, and
 * shows its registrations and the result of a call of its first function.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mal.h"

static const char *const types[] = {"void", "bit", "lng", "str"};
static const char *version;
static char *(*start_module)(void);
static char *(*first)(lng *result);

/* How a server reads a type: where the number is has never changed, and the bits that
 * have must all be 0. */
struct server_type {
	uint16_t number : 8;
	uint16_t kind : 8;
};

const char *
GDKversion(void)
{
	return version;
}

bool
GDKexiting(void)
{
	return false;
}

char *
GDKstrdup(const char *text)
{
	return strdup(text);
}

int
ATOMindex(const char *type)
{
	int number = 0;

	while (strcmp(types[number], type) != 0)
		number++;
	return number;
}

void
mal_module2(const char *name, void *atoms, void *functions, char *(*start)(void),
            const char *code)
{
	if (strcmp(name, "tique") == 0 && !atoms && !functions && !code)
		start_module = start;
}

int
melFunction(bool command, const char *module, const char *name, void *implementation,
            const char *implementation_name, bool unsafe, const char *comment,
            int results, int count, ...)
{
	va_list all;

	if (!first)
		first = implementation;
	printf("%s%s %s.%s %s%s %d", unsafe ? "unsafe " : "",
	       command ? "command" : "pattern", module, name, implementation_name,
	       comment, results);
	va_start(all, count);
	for (int i = 0; i < count; i++) {
		struct server_type type = va_arg(all, struct server_type);

		printf(" %s", types[type.number]);
		if (type.kind)
			return 1;
	}
	va_end(all);
	printf("\n");
	return 0;
}

int
main(int count, char **arguments)
{
	lng result = 0;

	version = arguments[1];
	if (count != 3 || !dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!start_module)
		return 0;
	if (start_module() || first(&result))
		return 1;
	printf("%" PRId64 "\n", result);
	return 0;
}
