/*
 * DuckDB's skin of the sequencer: SQL functions that read it, and none that
 * could move it (promise P11).
 *
 * One shared object serves every DuckDB instance of the process, and each
 * instance belongs to one sequencer. The driver announces the sequencer's handle
 * right before LOAD; the entry point takes it and puts it into a binding that
 * the instance's functions carry. The binding holds a handle, never a pointer,
 * so a query after the sequencer was closed gets an error. LOAD does nothing in
 * an instance that already has the functions (it outlived the sequencer that it
 * was loaded for); the driver then reads the binding's number through SQL and
 * binds it anew.
 */
#include "binding.h"

#include <stdlib.h>

typedef int64_t (*reader)(const struct binding *binding);

static _Atomic tique_handle announced;

/* Guards the bindings and their references. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct binding *bindings;
static int64_t last_number;
/* A copy, since DuckDB's own goes when the entry point returns. Every instance
 * of the process passes the same pointers; only the first copy is kept, and it
 * is complete before any function is registered. */
struct duckdb_api duckdb;
static bool have_api;

static void
renew_mutex(void)
{
	mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

__attribute__((constructor)) static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, renew_mutex);
}

/* Announces the handle for the next LOAD and returns the one that no LOAD has
 * taken; 0 stands for none in both directions. */
TIQUE_EXPORT tique_handle
tique_duckdb_announce(tique_handle handle)
{
	return atomic_exchange(&announced, handle);
}

/* The binding of that number; the mutex is held. */
static struct binding *
find(int64_t number)
{
	struct binding *binding = bindings;

	while (binding && binding->number != number)
		binding = binding->next;
	return binding;
}

/* Binds again an instance whose sequencer was closed. */
TIQUE_EXPORT int
tique_duckdb_rebind(int64_t number, tique_handle handle)
{
	struct binding *binding;
	int status = TIQUE_UNKNOWN;

	pthread_mutex_lock(&mutex);
	binding = find(number);
	if (binding) {
		tique_handle bound = atomic_load(&binding->handle);

		status = bound != handle && tique_sts(bound) != TIQUE_CLOSED
		             ? TIQUE_IN_USE
		             : TIQUE_OK;
		if (status == TIQUE_OK)
			atomic_store(&binding->handle, handle);
	}
	pthread_mutex_unlock(&mutex);
	return status;
}

static struct binding *
create_binding(tique_handle handle)
{
	struct binding *binding = calloc(1, sizeof *binding);

	if (!binding)
		return NULL;
	atomic_init(&binding->handle, handle);
	pthread_mutex_init(&binding->running, NULL);
	binding->references = 1;
	pthread_mutex_lock(&mutex);
	binding->number = ++last_number;
	binding->next = bindings;
	bindings = binding;
	pthread_mutex_unlock(&mutex);
	return binding;
}

struct binding *
tique_find_binding(int64_t number)
{
	struct binding *binding;

	pthread_mutex_lock(&mutex);
	binding = find(number);
	if (binding)
		binding->references++;
	pthread_mutex_unlock(&mutex);
	return binding;
}

void
tique_release_binding(void *data)
{
	struct binding *binding = data;

	pthread_mutex_lock(&mutex);
	if (--binding->references == 0) {
		struct binding **link = &bindings;

		while (*link != binding)
			link = &(*link)->next;
		*link = binding->next;
		pthread_mutex_destroy(&binding->running);
		free(binding);
	}
	pthread_mutex_unlock(&mutex);
}

static void
fill(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output,
     reader read)
{
	const struct binding *binding = duckdb.scalar_function_get_extra_info(info);
	uint64_t rows = duckdb.data_chunk_get_size(input);
	int64_t *values = duckdb.vector_get_data(output);

	for (uint64_t row = 0; row < rows; row++) {
		values[row] = read(binding);
		if (values[row] < 0) {
			duckdb.scalar_function_set_error(
			    info, "tique: this database's sequencer is closed; "
			          "open the database through tique again");
			return;
		}
	}
}

static int64_t
read_sts(const struct binding *binding)
{
	return tique_sts(atomic_load(&binding->handle));
}

static int64_t
read_cts(const struct binding *binding)
{
	return tique_cts(atomic_load(&binding->handle));
}

static int64_t
read_lambda(const struct binding *binding)
{
	return tique_lambda(atomic_load(&binding->handle));
}

static int64_t
read_active(const struct binding *binding)
{
	return tique_active_count(atomic_load(&binding->handle));
}

static int64_t
read_number(const struct binding *binding)
{
	return binding->number;
}

#define SQL_FUNCTION(name)                                                     \
	static void sql_##name(duckdb_function_info info,                      \
	                       duckdb_data_chunk input, duckdb_vector output)  \
	{                                                                      \
		fill(info, input, output, read_##name);                        \
	}
SQL_FUNCTION(sts)
SQL_FUNCTION(cts)
SQL_FUNCTION(lambda)
SQL_FUNCTION(active)
SQL_FUNCTION(number)

static bool
register_function(duckdb_connection connection, struct binding *binding,
                  const char *name, duckdb_scalar_callback callback)
{
	duckdb_scalar_function function = duckdb.create_scalar_function();
	duckdb_logical_type bigint = duckdb.create_logical_type(DUCKDB_BIGINT);
	bool registered;

	pthread_mutex_lock(&mutex);
	binding->references++;
	pthread_mutex_unlock(&mutex);
	duckdb.scalar_function_set_name(function, name);
	duckdb.scalar_function_set_return_type(function, bigint);
	duckdb.scalar_function_set_volatile(function);
	duckdb.scalar_function_set_extra_info(function, binding,
	                                       tique_release_binding);
	duckdb.scalar_function_set_function(function, callback);
	registered = duckdb.register_scalar_function(connection, function) ==
	             DUCKDB_SUCCESS;
	duckdb.destroy_logical_type(&bigint);
	duckdb.destroy_scalar_function(&function);
	return registered;
}

static bool
register_functions(duckdb_connection connection, struct binding *binding)
{
	return register_function(connection, binding, "tique_sts", sql_sts) &&
	       register_function(connection, binding, "tique_cts", sql_cts) &&
	       register_function(connection, binding, "tique_lambda",
	                         sql_lambda) &&
	       register_function(connection, binding, "tique_active",
	                         sql_active) &&
	       register_function(connection, binding, "tique_binding", sql_number);
}

/* DuckDB's entry point: its name is the file's, up to the first dot. */
TIQUE_EXPORT bool
tique_init_c_api(duckdb_extension_info info,
                 const struct duckdb_extension_access *access)
{
	tique_handle handle = atomic_exchange(&announced, 0);
	const struct duckdb_api *api = access->get_api(info, DUCKDB_ABI_VERSION);
	duckdb_database *database = access->get_database(info);
	struct binding *binding;
	bool registered = false;

	if (!api || !database)
		return false;
	if (handle == 0) {
		access->set_error(info, "tique: only the tique driver loads this "
		                        "extension; open the database through tique");
		return false;
	}
	pthread_mutex_lock(&mutex);
	if (!have_api)
		duckdb = *api;
	have_api = true;
	pthread_mutex_unlock(&mutex);
	binding = create_binding(handle);
	if (binding &&
	    duckdb.connect(*database, &binding->connection) == DUCKDB_SUCCESS) {
		registered = register_functions(binding->connection, binding);
		if (!registered)
			duckdb.disconnect(&binding->connection);
	}
	if (binding)
		tique_release_binding(binding);
	if (!registered)
		access->set_error(info, "tique: DuckDB refused the SQL functions");
	return registered;
}
