/*
 * What holdfast.h promises: run by scripts/capi.sh, built as C99 and as C++17, with and without
 * sanitizers, and under valgrind. The argument is a folder for image files.
 */

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <holdfast_ioctl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int passed, failed;
static const char *folder;

static void report(int holds, const char *what, int line)
{
    if (holds) {
        passed++;
        return;
    }
    failed++;
    fprintf(stderr, "behaviour.c:%d: %s; hf_last_error: %s\n", line, what, hf_last_error());
}

#define CHECK(condition) report((condition) ? 1 : 0, #condition, __LINE__)
#define SAYS(text) CHECK(strstr(hf_last_error(), text) != NULL)

static struct hf_stat new_stat(void)
{
    struct hf_stat attr;

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    return attr;
}

static struct hf_fs *new_memory(void)
{
    struct hf_fs *fs = NULL;

    CHECK(hf_memory(NULL, &fs) == 0);
    return fs;
}

static struct hf_file *open_file(struct hf_fs *fs, const char *path, int flags)
{
    struct hf_file *file = NULL;

    CHECK(hf_open(fs, path, flags, 0644, &file) == 0);
    return file;
}

static void put(struct hf_fs *fs, const char *path, const char *text)
{
    struct hf_file *file = open_file(fs, path, O_WRONLY | O_CREAT | O_TRUNC);

    CHECK(hf_pwrite(file, text, strlen(text), 0) == (ssize_t)strlen(text));
    CHECK(hf_close_file(file) == 0);
}

static int holds(struct hf_fs *fs, const char *path, const char *text)
{
    char buffer[64];
    struct hf_file *file = open_file(fs, path, O_RDONLY);
    ssize_t length = hf_pread(file, buffer, sizeof buffer, 0);

    CHECK(hf_close_file(file) == 0);
    return length == (ssize_t)strlen(text) && memcmp(buffer, text, (size_t)length) == 0;
}

/* Every function with NULL for each pointer in turn. */
static void null_pointers(void)
{
    struct hf_fs *fs = new_memory(), *other;
    struct hf_file *file;
    struct hf_dir *dir;
    struct hf_dirent entry;
    struct hf_stat attr = new_stat();
    struct hf_content content;
    uint64_t cursor = 0;
    char buffer[8];
    const char *paths[1] = { NULL };

    memset(&entry, 0, sizeof entry);
    entry.size = sizeof entry;
    memset(&content, 0, sizeof content);
    content.size = sizeof content;
    CHECK(hf_memory(NULL, NULL) == -EINVAL);
    SAYS("hf_memory: the place for the handle is NULL");
    CHECK(hf_open_volume(NULL, NULL, &other) == -EINVAL);
    CHECK(hf_open_volume("/nowhere", NULL, NULL) == -EINVAL);
    CHECK(hf_create_volume(NULL, NULL, &other) == -EINVAL);
    CHECK(hf_create_volume("/nowhere", NULL, NULL) == -EINVAL);
    CHECK(hf_close(NULL) == -EBADF);
    CHECK(hf_sync(NULL) == -EBADF);
    CHECK(hf_statvfs(fs, NULL) == -EINVAL);
    CHECK(hf_statvfs(NULL, NULL) == -EBADF);
    CHECK(hf_subdir(NULL, "/", &other) == -EBADF);
    CHECK(hf_subdir(fs, NULL, &other) == -EINVAL);
    CHECK(hf_subdir(fs, "/", NULL) == -EINVAL);
    CHECK(hf_as_user(NULL, 1, 1, NULL, 0, 022, &other) == -EBADF);
    CHECK(hf_as_user(fs, 1, 1, NULL, 1, 022, &other) == -EINVAL);
    CHECK(hf_as_user(fs, 1, 1, NULL, 0, 022, NULL) == -EINVAL);
    CHECK(hf_as_root(NULL, &other) == -EBADF);
    CHECK(hf_as_root(fs, NULL) == -EINVAL);
    CHECK(hf_open(NULL, "/f", O_RDONLY, 0, &file) == -EBADF);
    CHECK(hf_open(fs, NULL, O_RDONLY, 0, &file) == -EINVAL);
    CHECK(hf_open(fs, "/f", O_CREAT | O_RDWR, 0644, NULL) == -EINVAL);
    CHECK(hf_access(fs, "/f", F_OK) == -ENOENT);
    CHECK(hf_close_file(NULL) == -EBADF);
    CHECK(hf_pread(NULL, buffer, 1, 0) == -EBADF);
    CHECK(hf_pwrite(NULL, buffer, 1, 0) == -EBADF);
    file = open_file(fs, "/f", O_CREAT | O_RDWR);
    CHECK(hf_pread(file, NULL, 1, 0) == -EINVAL);
    CHECK(hf_pread(file, NULL, 0, 0) == 0);
    CHECK(hf_pwrite(file, NULL, 1, 0) == -EINVAL);
    CHECK(hf_pwrite(file, NULL, 0, 0) == 0);
    CHECK(hf_pread(file, buffer, (size_t)-1, 0) == -EINVAL);
    CHECK(hf_pread(file, buffer, 1, -1) == -EINVAL);
    CHECK(hf_fstat(file, NULL) == -EINVAL);
    CHECK(hf_fstat(NULL, &attr) == -EBADF);
    CHECK(hf_fsync(NULL) == -EBADF);
    CHECK(hf_fdatasync(NULL) == -EBADF);
    CHECK(hf_ftruncate(NULL, 0) == -EBADF);
    CHECK(hf_ftruncate(file, -1) == -EINVAL);
    CHECK(hf_close_file(file) == 0);
    CHECK(hf_stat(NULL, "/", &attr) == -EBADF);
    CHECK(hf_stat(fs, NULL, &attr) == -EINVAL);
    CHECK(hf_stat(fs, "/", NULL) == -EINVAL);
    CHECK(hf_lstat(NULL, "/", &attr) == -EBADF);
    CHECK(hf_lstat(fs, NULL, &attr) == -EINVAL);
    CHECK(hf_lstat(fs, "/", NULL) == -EINVAL);
    CHECK(hf_access(NULL, "/", F_OK) == -EBADF);
    CHECK(hf_access(fs, NULL, F_OK) == -EINVAL);
    CHECK(hf_access(fs, "/", 8) == -EINVAL);
    CHECK(hf_chmod(NULL, "/", 0755) == -EBADF);
    CHECK(hf_chmod(fs, NULL, 0755) == -EINVAL);
    CHECK(hf_chown(NULL, "/", 0, 0, 0) == -EBADF);
    CHECK(hf_chown(fs, NULL, 0, 0, 0) == -EINVAL);
    CHECK(hf_chown(fs, "/", 0, 0, 64) == -EINVAL);
    CHECK(hf_utimens(NULL, "/", NULL, 0) == -EBADF);
    CHECK(hf_utimens(fs, NULL, NULL, 0) == -EINVAL);
    CHECK(hf_truncate(NULL, "/f", 0) == -EBADF);
    CHECK(hf_truncate(fs, NULL, 0) == -EINVAL);
    CHECK(hf_mkdir(NULL, "/d", 0755) == -EBADF);
    CHECK(hf_mkdir(fs, NULL, 0755) == -EINVAL);
    CHECK(hf_unlink(NULL, "/f") == -EBADF);
    CHECK(hf_unlink(fs, NULL) == -EINVAL);
    CHECK(hf_rmdir(NULL, "/d") == -EBADF);
    CHECK(hf_rmdir(fs, NULL) == -EINVAL);
    CHECK(hf_rename(NULL, "/f", fs, "/g", 0) == -EBADF);
    CHECK(hf_rename(fs, "/f", NULL, "/g", 0) == -EBADF);
    CHECK(hf_rename(fs, NULL, fs, "/g", 0) == -EINVAL);
    CHECK(hf_rename(fs, "/f", fs, NULL, 0) == -EINVAL);
    CHECK(hf_rename(fs, "/f", fs, "/g", 1U << 31) == -EINVAL);
    CHECK(hf_link(NULL, "/f", fs, "/g") == -EBADF);
    CHECK(hf_link(fs, NULL, fs, "/g") == -EINVAL);
    CHECK(hf_link(fs, "/f", fs, NULL) == -EINVAL);
    CHECK(hf_symlink(NULL, "f", "/l") == -EBADF);
    CHECK(hf_symlink(fs, NULL, "/l") == -EINVAL);
    CHECK(hf_symlink(fs, "f", NULL) == -EINVAL);
    CHECK(hf_readlink(NULL, "/l", buffer, 1) == -EBADF);
    CHECK(hf_readlink(fs, NULL, buffer, 1) == -EINVAL);
    CHECK(hf_readlink(fs, "/l", NULL, 1) == -EINVAL);
    CHECK(hf_getxattr(NULL, "/f", "user.a", buffer, 1) == -EBADF);
    CHECK(hf_getxattr(fs, NULL, "user.a", buffer, 1) == -EINVAL);
    CHECK(hf_getxattr(fs, "/f", NULL, buffer, 1) == -EINVAL);
    CHECK(hf_getxattr(fs, "/f", "user.a", NULL, 1) == -EINVAL);
    CHECK(hf_setxattr(NULL, "/f", "user.a", "b", 1, 0) == -EBADF);
    CHECK(hf_setxattr(fs, NULL, "user.a", "b", 1, 0) == -EINVAL);
    CHECK(hf_setxattr(fs, "/f", NULL, "b", 1, 0) == -EINVAL);
    CHECK(hf_setxattr(fs, "/f", "user.a", NULL, 1, 0) == -EINVAL);
    CHECK(hf_setxattr(fs, "/f", "user.a", "b", 1, 8) == -EINVAL);
    CHECK(hf_listxattr(NULL, "/f", buffer, 1) == -EBADF);
    CHECK(hf_listxattr(fs, NULL, buffer, 1) == -EINVAL);
    CHECK(hf_listxattr(fs, "/f", NULL, 1) == -EINVAL);
    CHECK(hf_removexattr(NULL, "/f", "user.a") == -EBADF);
    CHECK(hf_removexattr(fs, NULL, "user.a") == -EINVAL);
    CHECK(hf_removexattr(fs, "/f", NULL) == -EINVAL);
    CHECK(hf_opendir(NULL, "/", &dir) == -EBADF);
    CHECK(hf_opendir(fs, NULL, &dir) == -EINVAL);
    CHECK(hf_opendir(fs, "/", NULL) == -EINVAL);
    CHECK(hf_readdirplus(NULL, &entry, &attr) == -EBADF);
    CHECK(hf_opendir(fs, "/", &dir) == 0);
    CHECK(hf_readdirplus(dir, NULL, &attr) == -EINVAL);
    CHECK(hf_readdirplus(dir, &entry, NULL) == 1);
    CHECK(hf_closedir(dir) == 0);
    CHECK(hf_closedir(NULL) == -EBADF);
    CHECK(hf_bulkstat(NULL, &cursor, &attr, 1) == -EBADF);
    CHECK(hf_bulkstat(fs, NULL, &attr, 1) == -EINVAL);
    CHECK(hf_bulkstat(fs, &cursor, NULL, 1) == -EINVAL);
    CHECK(hf_bulkstat(fs, &cursor, &attr, (size_t)-1) == -EINVAL);
    CHECK(hf_read_many(NULL, paths, 0, buffer, 1, &content) == -EBADF);
    CHECK(hf_read_many(fs, NULL, 1, buffer, 1, &content) == -EINVAL);
    CHECK(hf_read_many(fs, paths, 1, buffer, 1, &content) == -EINVAL);
    CHECK(hf_read_many(fs, paths, 1, NULL, 1, &content) == -EINVAL);
    CHECK(hf_read_many(fs, paths, 1, buffer, 1, NULL) == -EINVAL);
    CHECK(hf_warm(NULL, "/", 0) == -EBADF);
    CHECK(hf_warm(fs, NULL, 0) == -EINVAL);
    CHECK(hf_warm(fs, "/", 8) == -EINVAL);
    CHECK(hf_prefetch(NULL, "/", &cursor, 0) == -EBADF);
    CHECK(hf_prefetch(fs, NULL, &cursor, 0) == -EINVAL);
    CHECK(hf_prefetch(fs, "/", NULL, 0) == -EINVAL);
    CHECK(hf_close(fs) == 0);
}

static void closed_and_foreign_handles(void)
{
    struct hf_fs *fs = new_memory(), *fresh, *dir;
    struct hf_file *file = open_file(fs, "/f", O_CREAT | O_RDWR), *left;
    struct hf_dir *listing;
    struct hf_stat attr = new_stat();
    char buffer[8];

    CHECK(hf_pread((struct hf_file *)fs, buffer, 1, 0) == -EBADF);
    CHECK(hf_stat((struct hf_fs *)file, "/", &attr) == -EBADF);
    CHECK(hf_closedir((struct hf_dir *)file) == -EBADF);
    CHECK(hf_stat((struct hf_fs *)&attr, "/", &attr) == -EBADF);
    CHECK(hf_close((struct hf_fs *)buffer) == -EBADF);
    SAYS("hf_close: the handle is closed or of another kind");
    SAYS("hf_open_volume");

    CHECK(hf_close_file(file) == 0);
    CHECK(hf_close_file(file) == -EBADF);
    CHECK(hf_pread(file, buffer, 1, 0) == -EBADF);
    left = open_file(fs, "/f", O_RDONLY);
    CHECK(left != file);
    CHECK(hf_pread(file, buffer, 1, 0) == -EBADF);

    /* The handle of the file system closes those that were opened through it. */
    CHECK(hf_mkdir(fs, "/d", 0755) == 0);
    CHECK(hf_subdir(fs, "/d", &dir) == 0);
    CHECK(hf_opendir(dir, ".", &listing) == 0);
    CHECK(hf_close(fs) == 0);
    CHECK(hf_close(fs) == -EBADF);
    CHECK(hf_pread(left, buffer, 1, 0) == -EBADF);
    CHECK(hf_mkdir(dir, "e", 0755) == -EBADF);
    CHECK(hf_closedir(listing) == -EBADF);
    fresh = new_memory();
    CHECK(fresh != fs);
    CHECK(hf_stat(fs, "/", &attr) == -EBADF);
    CHECK(hf_close(fresh) == 0);
}

/* Only the bytes that the size covers are read and written. */
static void sizes_of_structs(void)
{
    struct hf_fs *fs = new_memory(), *other;
    struct hf_memory_options limits;
    struct {
        struct hf_stat attr;
        unsigned char beyond[64];
    } larger;
    unsigned char *bytes = (unsigned char *)&larger;
    struct hf_stat attr = new_stat();
    size_t i, wrong = 0;

    CHECK(sizeof(struct hf_stat) == 120);
    CHECK(sizeof(struct hf_dirent) == 280);
    CHECK(sizeof(struct hf_volume_options) == 104);
    CHECK(sizeof(struct holdfast_prefetch) == 56);
    put(fs, "/f", "hello");
    attr.size = 0;
    CHECK(hf_stat(fs, "/f", &attr) == -EINVAL);
    SAYS("sizeof (struct hf_stat)");
    attr.size = 1 << 20;
    CHECK(hf_stat(fs, "/f", &attr) == -EINVAL);

    /* A program that was built with fewer fields. */
    memset(&larger, 0xaa, sizeof larger);
    larger.attr.size = 16;
    CHECK(hf_stat(fs, "/f", &larger.attr) == 0);
    CHECK(S_ISREG(larger.attr.st_mode) && larger.attr.size == 16);
    for (i = 16; i < sizeof larger; i++)
        wrong += bytes[i] != 0xaa;
    CHECK(wrong == 0);
    /* One that was built with more. */
    larger.attr.size = sizeof larger.attr + 32;
    CHECK(hf_stat(fs, "/f", &larger.attr) == 0);
    CHECK(larger.attr.st_size == 5);
    for (i = 0; i < sizeof larger.beyond; i++)
        wrong += larger.beyond[i] != (i < 32 ? 0 : 0xaa);
    CHECK(wrong == 0);

    memset(&limits, 0, sizeof limits);
    limits.bytes_max = 1 << 20;
    CHECK(hf_memory(&limits, &other) == -EINVAL);
    SAYS("sizeof (struct hf_memory_options)");
    limits.size = 16; /* without inodes_max */
    limits.inodes_max = 1;
    CHECK(hf_memory(&limits, &other) == 0);
    CHECK(hf_mkdir(other, "/d", 0755) == 0);
    CHECK(hf_close(other) == 0);
    memset(&larger, 0, sizeof larger);
    larger.attr.size = 32;
    bytes[31] = 1;
    CHECK(hf_memory((struct hf_memory_options *)(void *)bytes, &other) == -E2BIG);
    CHECK(hf_close(fs) == 0);
}

static void names_and_attributes(void)
{
    struct hf_fs *fs = new_memory(), *dir;
    struct hf_stat attr = new_stat(), other = new_stat();
    struct hf_timespec times[2] = { { 7, 8 }, { 9, 10 } };
    struct hf_statvfs space;
    struct hf_file *file;
    char buffer[16];

    CHECK(hf_mkdir(fs, "/d", 0750) == 0);
    CHECK(hf_stat(fs, "/d", &attr) == 0);
    CHECK(attr.st_mode == (S_IFDIR | 0750) && attr.st_nlink == 2);
    CHECK(attr.st_uid == geteuid() && attr.st_gid == getegid());
    CHECK(hf_mkdir(fs, "/d", 0755) == -EEXIST);
    SAYS("hf_mkdir: /d: File exists");
    CHECK(hf_mkdir(fs, "/no/e", 0755) == -ENOENT);
    SAYS("/no/e");

    CHECK(hf_subdir(fs, "d", &dir) == 0);
    put(dir, "a", "first");
    CHECK(holds(fs, "/d/a", "first"));
    CHECK(hf_link(dir, "a", fs, "/b") == 0);
    CHECK(hf_stat(fs, "/b", &attr) == 0 && attr.st_nlink == 2);
    CHECK(hf_symlink(fs, "d/a", "/l") == 0);
    CHECK(hf_readlink(fs, "/l", buffer, sizeof buffer) == 3 && memcmp(buffer, "d/a", 3) == 0);
    CHECK(hf_readlink(fs, "/l", buffer, 2) == 2);
    CHECK(hf_readlink(fs, "/b", buffer, 2) == -EINVAL);
    CHECK(hf_lstat(fs, "/l", &attr) == 0 && S_ISLNK(attr.st_mode));
    CHECK(hf_stat(fs, "/l", &attr) == 0 && S_ISREG(attr.st_mode));
    put(fs, "/c", "second");
    CHECK(hf_rename(fs, "/c", dir, "a", HF_RENAME_NOREPLACE) == -EEXIST);
    SAYS("/c -> a");
    CHECK(hf_rename(fs, "/c", dir, "a", HF_RENAME_EXCHANGE) == 0);
    CHECK(holds(dir, "a", "second") && holds(fs, "/c", "first"));
    CHECK(hf_rename(dir, "a", fs, "/c", 0) == 0);
    CHECK(hf_access(fs, "/d/a", F_OK) == -ENOENT);
    CHECK(hf_unlink(fs, "/d") == -EISDIR);
    put(dir, "x", "");
    CHECK(hf_rmdir(fs, "/d") == -ENOTEMPTY);
    CHECK(hf_unlink(dir, "x") == 0);
    CHECK(hf_rmdir(fs, "/d") == 0);
    CHECK(hf_mkdir(dir, "late", 0755) == -ENOENT);
    CHECK(hf_close(dir) == 0);
    CHECK(hf_stat(fs, "/c", &attr) == 0);

    CHECK(hf_chmod(fs, "/c", 0600) == 0);
    CHECK(hf_utimens(fs, "/c", times, 0) == 0);
    CHECK(hf_stat(fs, "/c", &attr) == 0);
    CHECK((attr.st_mode & 07777) == 0600);
    CHECK(attr.st_atim.tv_sec == 7 && attr.st_mtim.tv_nsec == 10);
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_nsec = UTIME_NOW;
    CHECK(hf_utimens(fs, "/c", times, 0) == 0);
    CHECK(hf_stat(fs, "/c", &other) == 0);
    CHECK(other.st_atim.tv_sec == 7 && other.st_mtim.tv_sec > 1000000);
    times[0].tv_nsec = times[1].tv_nsec = UTIME_OMIT;
    CHECK(hf_utimens(fs, "/c", times, 0) == 0);
    CHECK(hf_stat(fs, "/c", &attr) == 0);
    CHECK(memcmp(&attr.st_ctim, &other.st_ctim, sizeof attr.st_ctim) == 0);
    times[0].tv_nsec = -1;
    CHECK(hf_utimens(fs, "/c", times, 0) == -EINVAL);
    CHECK(hf_utimens(fs, "/c", NULL, 0) == 0);
    CHECK(hf_chown(fs, "/l", (uint32_t)-1, getegid(), HF_NOFOLLOW) == 0);

    file = open_file(fs, "/c", O_RDWR);
    CHECK(hf_ftruncate(file, 3) == 0);
    CHECK(hf_fstat(file, &attr) == 0 && attr.st_size == 3);
    CHECK(hf_truncate(fs, "/c", 4) == 0);
    CHECK(hf_pread(file, buffer, sizeof buffer, 0) == 4 && memcmp(buffer, "sec", 4) == 0);
    CHECK(hf_fsync(file) == 0 && hf_fdatasync(file) == 0 && hf_sync(fs) == 0);
    CHECK(hf_close_file(file) == 0);
    file = open_file(fs, "/c", O_RDONLY);
    CHECK(hf_pwrite(file, "x", 1, 0) == -EBADF);
    SAYS("hf_pwrite: /c: Bad file descriptor");
    CHECK(hf_close_file(file) == 0);
    CHECK(hf_open(fs, "/c", O_CREAT | O_EXCL | O_WRONLY, 0600, &file) == -EEXIST);

    memset(&space, 0, sizeof space);
    space.size = sizeof space;
    CHECK(hf_statvfs(fs, &space) == 0);
    CHECK(space.f_bsize == 4096 && space.f_namemax == 255 && space.f_bfree < space.f_blocks);
    CHECK(hf_close(fs) == 0);
}

static void extended_attributes(void)
{
    struct hf_fs *fs = new_memory();
    char buffer[16];

    put(fs, "/f", "");
    CHECK(hf_setxattr(fs, "/f", "user.a", "one", 3, HF_XATTR_CREATE) == 0);
    CHECK(hf_setxattr(fs, "/f", "user.a", "x", 1, HF_XATTR_CREATE) == -EEXIST);
    CHECK(hf_setxattr(fs, "/f", "user.b", "x", 1, HF_XATTR_REPLACE) == -ENODATA);
    CHECK(hf_getxattr(fs, "/f", "user.a", NULL, 0) == 3);
    CHECK(hf_getxattr(fs, "/f", "user.a", buffer, 2) == -ERANGE);
    CHECK(hf_getxattr(fs, "/f", "user.a", buffer, 3) == 3 && memcmp(buffer, "one", 3) == 0);
    CHECK(hf_getxattr(fs, "/f", "user.b", buffer, 3) == -ENODATA);
    CHECK(hf_listxattr(fs, "/f", NULL, 0) == 7);
    CHECK(hf_listxattr(fs, "/f", buffer, sizeof buffer) == 7 && strcmp(buffer, "user.a") == 0);
    CHECK(hf_removexattr(fs, "/f", "user.a") == 0);
    CHECK(hf_removexattr(fs, "/f", "user.a") == -ENODATA);
    CHECK(hf_close(fs) == 0);
}

static void many_at_once(void)
{
    struct hf_fs *fs = new_memory(), *root;
    struct hf_dir *dir;
    struct hf_dirent entry;
    struct hf_stat attr = new_stat(), attrs[40];
    struct hf_content contents[4];
    const char *paths[4] = { "/d/1", "/none", "/d/large", "/d/2" };
    char name[32], buffer[64];
    uint64_t cursor = 0;
    ssize_t count, total = 0;
    int i, more, seen = 0;

    CHECK(hf_mkdir(fs, "/d", 0755) == 0);
    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "/d/%d", i);
        put(fs, name, name);
    }
    memset(&entry, 0, sizeof entry);
    entry.size = sizeof entry;
    CHECK(hf_opendir(fs, "/d", &dir) == 0);
    while ((more = hf_readdirplus(dir, &entry, &attr)) == 1) {
        seen++;
        CHECK(entry.error == 0 && entry.d_type == 8 && entry.d_ino == attr.st_ino);
        CHECK(entry.d_namlen == strlen(entry.d_name) && attr.st_size == 3 + entry.d_namlen);
    }
    CHECK(more == 0 && seen == 100);
    CHECK(hf_readdirplus(dir, &entry, &attr) == 0);
    CHECK(hf_closedir(dir) == 0);
    CHECK(hf_opendir(fs, "/d/1", &dir) == -ENOTDIR);

    CHECK(hf_as_root(fs, &root) == 0);
    attrs[0] = new_stat();
    while ((count = hf_bulkstat(root, &cursor, attrs, 40)) > 0) {
        total += count;
        CHECK(attrs[0].size == sizeof attrs[0] && attrs[count - 1].st_ino == cursor);
    }
    CHECK(count == 0 && total == 102);

    put(fs, "/d/large", "0123456789012345678901234567890123456789012345678901234567890123");
    memset(contents, 0, sizeof contents);
    contents[0].size = sizeof contents[0];
    CHECK(hf_read_many(fs, paths, 4, buffer, sizeof buffer, contents) == 2);
    CHECK(contents[0].error == 0 && contents[0].length == 4 && memcmp(buffer, "/d/1", 4) == 0);
    CHECK(contents[1].error == ENOENT);
    contents[2].size = sizeof contents[2];
    CHECK(hf_read_many(fs, paths + 2, 2, buffer, sizeof buffer, contents + 2) == 1);
    CHECK(contents[2].error == 0 && contents[2].length == 64);
    contents[2].size = sizeof contents[2];
    CHECK(hf_read_many(fs, paths + 2, 2, buffer, 63, contents + 2) == 2);
    CHECK(contents[2].error == ERANGE && contents[2].length == 64);
    CHECK(contents[3].error == 0 && memcmp(buffer + contents[3].offset, "/d/2", 4) == 0);

    CHECK(hf_warm(fs, "/", HF_WARM_CONTENT) == 102);
    cursor = 0;
    total = 0;
    while ((count = hf_prefetch(fs, "/d", &cursor, 30)) > 0)
        total += count;
    CHECK(count == 0 && total == 101);
    CHECK(hf_close(fs) == 0);
}

static void users(void)
{
    struct hf_fs *fs = new_memory(), *root, *ada, *member;
    struct hf_stat attr = new_stat();
    struct hf_file *file;
    uint64_t cursor = 0;
    uint32_t group = 77;

    CHECK(hf_as_root(fs, &root) == 0);
    CHECK(hf_as_user(fs, 1815, 1815, NULL, 0, 077, &ada) == 0);
    CHECK(hf_as_user(fs, 1791, 1791, &group, 1, 022, &member) == 0);
    CHECK(hf_mkdir(root, "/home", 0755) == 0);
    CHECK(hf_mkdir(ada, "/home/ada", 0755) == -EACCES);
    SAYS("hf_as_user");
    CHECK(hf_chmod(ada, "/home", 0777) == -EPERM);
    CHECK(hf_chown(root, "/home", (uint32_t)-1, group, 0) == 0);
    CHECK(hf_chmod(root, "/home", 0775) == 0);
    CHECK(hf_open(ada, "/home/f", O_CREAT | O_WRONLY, 0666, &file) == -EACCES);
    CHECK(hf_open(member, "/home/f", O_CREAT | O_WRONLY, 0666, &file) == 0);
    CHECK(hf_fstat(file, &attr) == 0 && attr.st_uid == 1791 && (attr.st_mode & 0777) == 0644);
    CHECK(hf_bulkstat(ada, &cursor, &attr, 1) == -EPERM);
    SAYS("hf_as_root");
    /* Such a handle ends by itself; the file system goes on. */
    CHECK(hf_close(ada) == 0 && hf_close(root) == 0);
    CHECK(hf_access(fs, "/home", R_OK) == 0);
    CHECK(hf_close(fs) == 0);
}

static void volumes(void)
{
    struct hf_volume_options options;
    struct hf_fs *fs, *second;
    struct hf_file *file;
    struct hf_statvfs space;
    char path[512];

    snprintf(path, sizeof path, "%s/data.hf", folder);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    CHECK(hf_open_volume(path, NULL, &fs) == -ENOENT);
    SAYS(path);
    options.volume_size = 64 << 20;
    strcpy(options.label, "capi");
    CHECK(hf_create_volume(path, &options, &fs) == 0);
    put(fs, "/kept", "kept");
    CHECK(hf_open_volume(path, NULL, &second) < 0);
    SAYS(path);
    CHECK(hf_close(fs) == 0);
    CHECK(hf_create_volume(path, &options, &fs) == -EEXIST);
    SAYS(path);

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = HF_READ_ONLY;
    CHECK(hf_open_volume(path, &options, &fs) == 0);
    CHECK(hf_open_volume(path, &options, &second) == 0);
    CHECK(holds(fs, "/kept", "kept") && holds(second, "/kept", "kept"));
    CHECK(hf_mkdir(fs, "/d", 0755) == -EROFS);
    SAYS("HF_READ_ONLY");
    memset(&space, 0, sizeof space);
    space.size = sizeof space;
    CHECK(hf_statvfs(fs, &space) == 0 && space.f_flag == 1);
    CHECK(hf_rename(fs, "/kept", second, "/moved", 0) == -EXDEV);
    CHECK(hf_close(fs) == 0 && hf_close(second) == 0);

    options.flags = HF_OPEN_OR_CREATE;
    CHECK(hf_open_volume(path, &options, &fs) == 0);
    file = open_file(fs, "/kept", O_RDWR);
    CHECK(hf_pwrite(file, "K", 1, 0) == 1 && hf_fsync(file) == 0);
    /* The file is closed with the volume. */
    CHECK(hf_close(fs) == 0);
    CHECK(hf_open_volume(path, NULL, &fs) == 0);
    CHECK(holds(fs, "/kept", "Kept"));
    CHECK(hf_close(fs) == 0);
    CHECK(unlink(path) == 0);
}

/* Fills a file system, and empties it. */
static void fill(struct hf_fs *fs)
{
    static char block[1 << 20];
    struct hf_file *file = open_file(fs, "/full", O_CREAT | O_WRONLY);
    int64_t offset = 0;
    ssize_t written;

    memset(block, 7, sizeof block);
    while ((written = hf_pwrite(file, block, sizeof block, offset)) > 0)
        offset += written;
    CHECK(written == -ENOSPC && offset > 0);
    SAYS("hf_pwrite: /full: No space left on device");
    SAYS("remove files");
    CHECK(hf_close_file(file) == 0);
    CHECK(hf_unlink(fs, "/full") == 0);
    put(fs, "/room", "there is");
    CHECK(holds(fs, "/room", "there is"));
}

static void full_file_systems(void)
{
    struct hf_memory_options limits;
    struct hf_volume_options options;
    struct hf_fs *fs;
    char path[512];

    memset(&limits, 0, sizeof limits);
    limits.size = sizeof limits;
    limits.bytes_max = 8 << 20;
    limits.inodes_max = 3;
    CHECK(hf_memory(&limits, &fs) == 0);
    fill(fs);
    CHECK(hf_mkdir(fs, "/d", 0755) == 0);
    CHECK(hf_mkdir(fs, "/e", 0755) == -ENOSPC);
    CHECK(hf_close(fs) == 0);

    snprintf(path, sizeof path, "%s/full.hf", folder);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.volume_size = 32 << 20;
    CHECK(hf_create_volume(path, &options, &fs) == 0);
    fill(fs);
    CHECK(hf_close(fs) == 0);
    CHECK(unlink(path) == 0);
}

struct worker {
    struct hf_fs *fs;
    int number, wrong;
};

static void *work(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    char path[32], missing[32];
    int i;

    if (hf_last_error()[0] != '\0')
        worker->wrong++;
    for (i = 0; i < 200; i++) {
        struct hf_file *file;
        struct hf_stat attr = new_stat();

        snprintf(path, sizeof path, "/%d-%d", worker->number, i);
        snprintf(missing, sizeof missing, "/missing-%d-%d", worker->number, i);
        if (hf_open(worker->fs, path, O_CREAT | O_WRONLY, 0644, &file) != 0 ||
            hf_pwrite(file, path, strlen(path), 0) != (ssize_t)strlen(path) ||
            hf_close_file(file) != 0)
            worker->wrong++;
        /* Each thread has its own last error. */
        if (hf_stat(worker->fs, missing, &attr) != -ENOENT ||
            strstr(hf_last_error(), missing) == NULL)
            worker->wrong++;
    }
    return NULL;
}

static void threads(void)
{
    struct hf_fs *fs = new_memory();
    struct worker workers[4];
    pthread_t ids[4];
    int i;

    for (i = 0; i < 4; i++) {
        workers[i].fs = fs;
        workers[i].number = i;
        workers[i].wrong = 0;
        CHECK(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < 4; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
        CHECK(workers[i].wrong == 0);
    }
    CHECK(hf_warm(fs, "/", 0) == 800);
    CHECK(hf_close(fs) == 0);
}

/* A file system is closed while other threads use it. */
static void *use(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    int result = 0;

    while (result == 0) {
        struct hf_stat attr = new_stat();

        result = hf_stat(worker->fs, "/", &attr);
    }
    worker->wrong = result != -EBADF;
    return NULL;
}

static void closed_in_use(void)
{
    struct worker worker;
    pthread_t id;

    worker.fs = new_memory();
    CHECK(pthread_create(&id, NULL, use, &worker) == 0);
    usleep(2000);
    CHECK(hf_close(worker.fs) == 0);
    CHECK(pthread_join(id, NULL) == 0 && worker.wrong == 0);
}

/* What the library holds does not grow with the file systems that were closed. */
static void leaks(void)
{
    size_t held[2];
    int round, i;

    for (round = 0; round < 2; round++) {
        for (i = 0; i < 100; i++) {
            struct hf_fs *fs = new_memory(), *dir;
            struct hf_file *file;

            CHECK(hf_mkdir(fs, "/d", 0755) == 0);
            CHECK(hf_subdir(fs, "/d", &dir) == 0);
            put(dir, "a", "content");
            file = open_file(dir, "b", O_CREAT | O_RDWR);
            CHECK(hf_pwrite(file, "x", 1, 1 << 20) == 1);
            CHECK(hf_close(fs) == 0);
        }
        held[round] = mallinfo2().uordblks;
    }
    CHECK(held[1] < held[0] + (64 << 10));
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : ".";
    CHECK(hf_last_error()[0] == '\0');
    CHECK(strcmp(hf_version(), argc > 2 ? argv[2] : hf_version()) == 0);
    null_pointers();
    closed_and_foreign_handles();
    sizes_of_structs();
    names_and_attributes();
    extended_attributes();
    many_at_once();
    users();
    volumes();
    full_file_systems();
    threads();
    closed_in_use();
    leaks();
    printf("test result: %s. %d passed; %d failed\n", failed ? "FAILED" : "ok", passed, failed);
    return failed != 0;
}
