/*
 * Makes a thousand small files in memory, and reads all of them in a few calls:
 * cc read_many.c $(pkg-config --cflags --libs holdfast)
 */

#include <fcntl.h>
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES 1000
#define BUFFER (64 * 1024)

static int fail(void)
{
    fprintf(stderr, "read_many: %s\n", hf_last_error());
    return 1;
}

int main(void)
{
    static char names[FILES][16], buffer[BUFFER];
    static const char *paths[FILES];
    static struct hf_content contents[FILES];
    struct hf_fs *fs;
    size_t done = 0, calls = 0;
    unsigned long long bytes = 0;

    if (hf_memory(NULL, &fs) != 0)
        return fail();
    for (int i = 0; i < FILES; i++) {
        struct hf_file *file;
        char text[512];
        int length = snprintf(text, sizeof text, "%0*d\n", 100 + i % 200, i);

        snprintf(names[i], sizeof names[i], "/%d", i);
        paths[i] = names[i];
        if (hf_open(fs, names[i], O_WRONLY | O_CREAT, 0644, &file) != 0)
            return fail();
        if (hf_pwrite(file, text, (size_t)length, 0) != length || hf_close_file(file) != 0)
            return fail();
    }
    while (done < FILES) {
        ssize_t answered;

        contents[done].size = sizeof contents[done];
        answered = hf_read_many(fs, paths + done, FILES - done, buffer, sizeof buffer,
                                contents + done);
        if (answered < 0)
            return fail();
        for (size_t i = done; i < done + (size_t)answered; i++) {
            if (contents[i].error != 0) {
                fprintf(stderr, "%s: %s\n", paths[i], strerror(contents[i].error));
                return 1;
            }
            /* The content: contents[i].length bytes at buffer + contents[i].offset. */
            if (strtol(buffer + contents[i].offset, NULL, 10) != (long)i)
                return 1;
            bytes += contents[i].length;
        }
        done += (size_t)answered;
        calls++;
    }
    printf("%d files, %llu bytes, %zu calls\n", FILES, bytes, calls);
    return hf_close(fs) != 0 ? fail() : 0;
}
