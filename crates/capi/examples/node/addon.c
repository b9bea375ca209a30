/*
 * An addon for Node.js over N-API: docs/book/reference/node.md shows how it is built and used.
 *
 * Work that can wait runs on libuv's threads, and its promise is settled on the thread of
 * JavaScript.
 */

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <node_api.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 4096
#define BUFFER_SIZE (1 << 20)

/* A call that runs on another thread: `read_many_run`, then `read_many_finish`. */
struct job {
    napi_deferred deferred;
    napi_async_work work;
    struct hf_fs *fs;
    size_t count;
    char **paths;
    void **data;
    size_t *lengths;
    int *errors;
    int result;
    char reason[PATH_SIZE];
};

static napi_value fail(napi_env env, int error, const char *reason)
{
    napi_value code, message, value;

    napi_create_int32(env, -error, &code);
    napi_create_string_utf8(env, reason, NAPI_AUTO_LENGTH, &message);
    napi_create_error(env, NULL, message, &value);
    napi_set_named_property(env, value, "errno", code);
    return value;
}

static napi_value throw_last(napi_env env, int result)
{
    napi_throw(env, fail(env, -result, hf_last_error()));
    return NULL;
}

/* Handles are numbers, and travel as BigInt. */
static napi_value from_handle(napi_env env, void *handle)
{
    napi_value value;

    napi_create_bigint_uint64(env, (uint64_t)(uintptr_t)handle, &value);
    return value;
}

static struct hf_fs *to_fs(napi_env env, napi_value value)
{
    uint64_t number = 0;
    bool lossless;

    /* What is no handle stays 0, which the library refuses. */
    napi_get_value_bigint_uint64(env, value, &number, &lossless);
    return (struct hf_fs *)(uintptr_t)number;
}

/* A path, or NULL, which the library refuses. */
static char *to_path(napi_env env, napi_value value, char *path)
{
    size_t length;

    if (napi_get_value_string_utf8(env, value, path, PATH_SIZE, &length) != napi_ok)
        return NULL;
    /* A path that was cut, or that has a NUL, would lead elsewhere. */
    return length == PATH_SIZE - 1 || strlen(path) != length ? NULL : path;
}

static void arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values)
{
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
}

static napi_value memory(napi_env env, napi_callback_info info)
{
    struct hf_fs *fs;
    int result = hf_memory(NULL, &fs);

    (void)info;
    return result < 0 ? throw_last(env, result) : from_handle(env, fs);
}

/* open(path): a volume, which is made if it does not exist. */
static napi_value open_volume(napi_env env, napi_callback_info info)
{
    struct hf_volume_options options;
    struct hf_fs *fs;
    napi_value values[1];
    char path[PATH_SIZE];
    int result;

    arguments(env, info, 1, values);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = HF_OPEN_OR_CREATE;
    result = hf_open_volume(to_path(env, values[0], path), &options, &fs);
    return result < 0 ? throw_last(env, result) : from_handle(env, fs);
}

static napi_value close_fs(napi_env env, napi_callback_info info)
{
    napi_value values[1];
    int result;

    arguments(env, info, 1, values);
    result = hf_close(to_fs(env, values[0]));
    return result < 0 ? throw_last(env, result) : NULL;
}

/* writeFile(fs, path, buffer) */
static napi_value write_file(napi_env env, napi_callback_info info)
{
    napi_value values[3];
    struct hf_file *file;
    char path[PATH_SIZE];
    void *data = NULL;
    size_t length = 0;
    ssize_t result;
    int closed;

    arguments(env, info, 3, values);
    napi_get_buffer_info(env, values[2], &data, &length);
    result = hf_open(to_fs(env, values[0]), to_path(env, values[1], path),
                     O_WRONLY | O_CREAT | O_TRUNC, 0644, &file);
    if (result < 0)
        return throw_last(env, (int)result);
    /* Fewer bytes are written where space runs out: the next call says so. */
    for (size_t done = 0; result >= 0 && done < length; done += (size_t)result) {
        result = hf_pwrite(file, (char *)data + done, length - done, (int64_t)done);
        if (result < 0)
            throw_last(env, (int)result);
    }
    closed = hf_close_file(file);
    if (result >= 0 && closed < 0)
        throw_last(env, closed);
    return NULL;
}

/* On a thread of libuv: reads through one buffer, and keeps a copy of each content. */
static void read_many_run(napi_env env, void *data)
{
    struct job *job = data;
    struct hf_content *contents = calloc(job->count + 1, sizeof *contents);
    char *buffer = malloc(BUFFER_SIZE);
    size_t size = BUFFER_SIZE, done = 0;

    (void)env;
    job->result = contents && buffer ? 0 : -ENOMEM;
    while (job->result == 0 && done < job->count) {
        ssize_t answered;

        contents[0].size = sizeof contents[0];
        answered = hf_read_many(job->fs, (const char *const *)job->paths + done, job->count - done,
                                buffer, size, contents);
        if (answered < 0) {
            job->result = (int)answered;
            strncpy(job->reason, hf_last_error(), sizeof job->reason - 1);
            break;
        }
        if (answered > 0 && contents[0].error == ERANGE && contents[0].length > size) {
            /* It is larger than the buffer: once more with one of its length. */
            char *larger = realloc(buffer, contents[0].length);

            if (larger == NULL) {
                job->result = -ENOMEM;
                break;
            }
            buffer = larger;
            size = contents[0].length;
            continue;
        }
        for (size_t i = 0; i < (size_t)answered; i++, done++) {
            if (contents[i].error == ERANGE) {
                /* Not the first of its call: it is the first of the next one. */
                break;
            }
            job->errors[done] = contents[i].error;
            job->lengths[done] = contents[i].length;
            job->data[done] = malloc(contents[i].length + 1);
            if (job->data[done] == NULL) {
                job->result = -ENOMEM;
                break;
            }
            memcpy(job->data[done], buffer + contents[i].offset, contents[i].length);
        }
    }
    free(buffer);
    free(contents);
}

/* On the thread of JavaScript: an array with a Buffer or an Error for each path. */
static void read_many_finish(napi_env env, napi_status status, void *data)
{
    struct job *job = data;
    napi_value array, value;

    if (status != napi_ok || job->result < 0) {
        const char *reason = job->reason[0] ? job->reason : strerror(-job->result);

        napi_reject_deferred(env, job->deferred, fail(env, -job->result, reason));
    } else {
        napi_create_array_with_length(env, job->count, &array);
        for (size_t i = 0; i < job->count; i++) {
            if (job->errors[i] != 0)
                value = fail(env, job->errors[i], strerror(job->errors[i]));
            else
                napi_create_buffer_copy(env, job->lengths[i], job->data[i], NULL, &value);
            napi_set_element(env, array, (uint32_t)i, value);
        }
        napi_resolve_deferred(env, job->deferred, array);
    }
    for (size_t i = 0; i < job->count; i++) {
        free(job->paths[i]);
        free(job->data[i]);
    }
    napi_delete_async_work(env, job->work);
    free(job->paths);
    free(job->data);
    free(job->lengths);
    free(job->errors);
    free(job);
}

/* readMany(fs, paths): a promise. */
static napi_value read_many(napi_env env, napi_callback_info info)
{
    napi_value values[2], name, value, promise;
    struct job *job = calloc(1, sizeof *job);
    char path[PATH_SIZE];
    uint32_t count = 0;

    arguments(env, info, 2, values);
    napi_get_array_length(env, values[1], &count);
    job->fs = to_fs(env, values[0]);
    job->count = count;
    job->paths = calloc(count + 1, sizeof *job->paths);
    job->data = calloc(count + 1, sizeof *job->data);
    job->lengths = calloc(count + 1, sizeof *job->lengths);
    job->errors = calloc(count + 1, sizeof *job->errors);
    for (uint32_t i = 0; i < count; i++) {
        napi_get_element(env, values[1], i, &value);
        if (to_path(env, value, path) != NULL)
            job->paths[i] = strdup(path);
    }
    napi_create_promise(env, &job->deferred, &promise);
    napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name);
    napi_create_async_work(env, NULL, name, read_many_run, read_many_finish, job, &job->work);
    napi_queue_async_work(env, job->work);
    return promise;
}

static napi_value start(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback function;
    } functions[] = {
        { "memory", memory },         { "open", open_volume },    { "close", close_fs },
        { "writeFile", write_file },  { "readMany", read_many },
    };

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        napi_value function;

        napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL,
                             &function);
        napi_set_named_property(env, exports, functions[i].name, function);
    }
    return exports;
}

NAPI_MODULE(holdfast, start)
