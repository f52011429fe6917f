/*
 * One statement of an instance that is prepared once and runs again and again:
 * the driver's append to its log. DuckDB's Python module plans a statement each
 * time that it runs, which is a third of its cost, or more.
 *
 * The connection is made when the extension is loaded: DuckDB gives its handle
 * of the database for that time alone. It keeps the instance open until the
 * driver gives it up, which it does before it closes its own.
 */
#include "binding.h"

#include <string.h>

static int
fail(struct binding *binding, const char *found, char *message, uint64_t size)
{
	if (size > 0) {
		strncpy(message, found ? found : "no message", size - 1);
		message[size - 1] = '\0';
	}
	/* Whatever is wrong with it: the next call prepares another one. */
	duckdb.destroy_prepare(&binding->statement);
	binding->statement = NULL;
	return TIQUE_UNKNOWN;
}

static int
run(struct binding *binding, const char *sql, int64_t first, int64_t second,
    const char *text, uint64_t length, char *message, uint64_t size)
{
	duckdb_result result;
	int status = TIQUE_OK;

	if (!binding->statement &&
	    duckdb.prepare(binding->connection, sql, &binding->statement) !=
	        DUCKDB_SUCCESS)
		return fail(binding, duckdb.prepare_error(binding->statement),
		            message, size);
	if (duckdb.bind_int64(binding->statement, 1, first) != DUCKDB_SUCCESS ||
	    duckdb.bind_int64(binding->statement, 2, second) != DUCKDB_SUCCESS ||
	    duckdb.bind_varchar_length(binding->statement, 3, text, length) !=
	        DUCKDB_SUCCESS)
		return fail(binding, "the parameters are of no use", message, size);
	if (duckdb.execute_prepared(binding->statement, &result) !=
	    DUCKDB_SUCCESS)
		status = fail(binding, duckdb.result_error(&result), message, size);
	duckdb.destroy_result(&result);
	return status;
}

/* Runs a statement with three parameters, two numbers and a text in UTF-8. All
 * calls of an instance have the same statement. TIQUE_CLOSED: its connection
 * was given up; TIQUE_UNKNOWN: it failed, and the message says why. */
TIQUE_EXPORT int
tique_duckdb_run(int64_t number, const char *sql, int64_t first, int64_t second,
                 const char *text, uint64_t length, char *message, uint64_t size)
{
	struct binding *binding = tique_find_binding(number);
	int status = TIQUE_CLOSED;

	if (!binding)
		return status;
	pthread_mutex_lock(&binding->running);
	if (binding->connection)
		status = run(binding, sql, first, second, text, length, message,
		             size);
	pthread_mutex_unlock(&binding->running);
	tique_release_binding(binding);
	return status;
}

/* Gives the connection up; idempotent. It may have been the instance's last. */
TIQUE_EXPORT void
tique_duckdb_disconnect(int64_t number)
{
	struct binding *binding = tique_find_binding(number);

	if (!binding)
		return;
	pthread_mutex_lock(&binding->running);
	if (binding->connection) {
		duckdb.destroy_prepare(&binding->statement);
		duckdb.disconnect(&binding->connection);
		binding->connection = NULL;
	}
	pthread_mutex_unlock(&binding->running);
	tique_release_binding(binding);
}
