/*
 * A server's side of the module, of the version that the first argument names: opens
 * the library that the second one names and shows what that registers.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "mal.h"

static const char *version;

const char *
GDKversion(void)
{
	return version;
}

int
GDKexiting(void)
{
	return 0;
}

char *
GDKstrdup(const char *text)
{
	return strdup(text);
}

#define SHOW(layout)                                                           \
	for (const layout *entry = table; entry->implementation; entry++)        \
	printf("%s.%s %d %s\n", entry->module, entry->name, entry->flags >> 8, \
	       entry->arguments[0].type)

void
mal_module(const char *name, void *atoms, void *table)
{
	if (strcmp(name, "tique") != 0 || atoms)
		return;
	if (strncmp(version, "11.41", 5) == 0)
		SHOW(struct mal_function_41);
	else
		SHOW(struct mal_function_45);
}

int
main(int count, char **arguments)
{
	version = arguments[1];
	if (count == 3 && dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL))
		return 0;
	fprintf(stderr, "%s\n", dlerror());
	return 1;
}
