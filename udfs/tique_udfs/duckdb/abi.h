/*
 * The part of DuckDB's C extension interface that tique uses.
 *
 * DuckDB hands an extension a struct of function pointers. Its layout up to
 * v1.2.0 is stable: later releases only append, so an extension that asks for
 * v1.2.0 loads unchanged in each of them. Members that are used have their name
 * here, runs of others are padding, and the number in each padding's name is the
 * position of the member that follows it, which the assertions below hold.
 */
#ifndef TIQUE_DUCKDB_ABI_H
#define TIQUE_DUCKDB_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUCKDB_ABI_VERSION "v1.2.0"

typedef struct opaque_database *duckdb_database;
typedef struct opaque_connection *duckdb_connection;
typedef struct opaque_logical_type *duckdb_logical_type;
typedef struct opaque_data_chunk *duckdb_data_chunk;
typedef struct opaque_vector *duckdb_vector;
typedef struct opaque_statement *duckdb_prepared_statement;
typedef struct opaque_scalar_function *duckdb_scalar_function;
typedef struct opaque_function_info *duckdb_function_info;
typedef struct opaque_extension_info *duckdb_extension_info;

typedef enum { DUCKDB_SUCCESS = 0, DUCKDB_ERROR = 1 } duckdb_state;
typedef enum { DUCKDB_BIGINT = 5 } duckdb_type;

/* A result is used through functions only; this is its size. */
typedef struct {
	void *opaque[6];
} duckdb_result;

typedef void (*duckdb_scalar_callback)(duckdb_function_info info,
                                       duckdb_data_chunk input,
                                       duckdb_vector output);
typedef void (*duckdb_delete_callback)(void *data);

struct duckdb_extension_access {
	void (*set_error)(duckdb_extension_info info, const char *message);
	duckdb_database *(*get_database)(duckdb_extension_info info);
	const void *(*get_api)(duckdb_extension_info info, const char *version);
};

struct duckdb_api {
	void *before_3[3];
	duckdb_state (*connect)(duckdb_database database,
	                        duckdb_connection *connection);
	void *before_6[2];
	void (*disconnect)(duckdb_connection *connection);
	void *before_14[7];
	void (*destroy_result)(duckdb_result *result);
	void *before_21[6];
	const char *(*result_error)(duckdb_result *result);
	void *before_46[24];
	duckdb_state (*prepare)(duckdb_connection connection, const char *query,
	                        duckdb_prepared_statement *statement);
	void (*destroy_prepare)(duckdb_prepared_statement *statement);
	const char *(*prepare_error)(duckdb_prepared_statement statement);
	void *before_61[12];
	duckdb_state (*bind_int64)(duckdb_prepared_statement statement,
	                           uint64_t number, int64_t value);
	void *before_77[15];
	duckdb_state (*bind_varchar_length)(duckdb_prepared_statement statement,
	                                    uint64_t number, const char *text,
	                                    uint64_t length);
	void *before_80[2];
	duckdb_state (*execute_prepared)(duckdb_prepared_statement statement,
	                                 duckdb_result *result);
	void *before_156[75];
	duckdb_logical_type (*create_logical_type)(duckdb_type type);
	void *before_184[27];
	void (*destroy_logical_type)(duckdb_logical_type *type);
	void *before_191[6];
	uint64_t (*data_chunk_get_size)(duckdb_data_chunk chunk);
	void *before_194[2];
	void *(*vector_get_data)(duckdb_vector vector);
	void *before_209[14];
	duckdb_scalar_function (*create_scalar_function)(void);
	void (*destroy_scalar_function)(duckdb_scalar_function *function);
	void (*scalar_function_set_name)(duckdb_scalar_function function,
	                                 const char *name);
	void *before_214[2];
	void (*scalar_function_set_volatile)(duckdb_scalar_function function);
	void *before_216[1];
	void (*scalar_function_set_return_type)(duckdb_scalar_function function,
	                                        duckdb_logical_type type);
	void (*scalar_function_set_extra_info)(duckdb_scalar_function function,
	                                       void *data,
	                                       duckdb_delete_callback destroy);
	void (*scalar_function_set_function)(duckdb_scalar_function function,
	                                     duckdb_scalar_callback callback);
	duckdb_state (*register_scalar_function)(duckdb_connection connection,
	                                         duckdb_scalar_function function);
	void *(*scalar_function_get_extra_info)(duckdb_function_info info);
	void (*scalar_function_set_error)(duckdb_function_info info,
	                                  const char *message);
};

#define DUCKDB_API_AT(member, position)                                        \
	_Static_assert(offsetof(struct duckdb_api, member) ==                  \
	                   (position) * sizeof(void *),                        \
	               #member)
DUCKDB_API_AT(connect, 3);
DUCKDB_API_AT(disconnect, 6);
DUCKDB_API_AT(destroy_result, 14);
DUCKDB_API_AT(result_error, 21);
DUCKDB_API_AT(prepare, 46);
DUCKDB_API_AT(prepare_error, 48);
DUCKDB_API_AT(bind_int64, 61);
DUCKDB_API_AT(bind_varchar_length, 77);
DUCKDB_API_AT(execute_prepared, 80);
DUCKDB_API_AT(create_logical_type, 156);
DUCKDB_API_AT(destroy_logical_type, 184);
DUCKDB_API_AT(data_chunk_get_size, 191);
DUCKDB_API_AT(vector_get_data, 194);
DUCKDB_API_AT(create_scalar_function, 209);
DUCKDB_API_AT(scalar_function_set_volatile, 214);
DUCKDB_API_AT(scalar_function_set_return_type, 216);
DUCKDB_API_AT(scalar_function_set_error, 221);

#endif
