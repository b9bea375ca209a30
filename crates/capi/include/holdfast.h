/*
 * Holdfast: a POSIX file system engine in this process. See docs/book/reference/c.md.
 *
 * Results: 0 or a number for success, -errno for a failure; hf_last_error() has the reason.
 *
 * Handles (struct hf_fs *, hf_file *, hf_dir *) are numbers, not addresses. A closed handle, NULL
 * and a handle of another kind give -EBADF. All functions may be called from any number of threads,
 * also on one handle. After fork(2) the child must not use them.
 *
 * Paths are strings of at most 4095 bytes. A relative path starts at the directory of its handle,
 * at first the root: there is no current directory. A NULL string is -EINVAL.
 *
 * Permissions are checked for the user of a handle: the thread that made or opened the file system.
 *
 * A struct begins with its size, which the caller sets. Only so many bytes are read or written, so
 * programs work with a newer library. Fields that are not used must be 0.
 *
 * If the library panics, the call gives -EIO, and so do all later ones on that file system, until
 * it is closed.
 */

#ifndef HOLDFAST_H
#define HOLDFAST_H

/* Made by `cargo xtask header` from crates/capi/src: do not edit. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * `hf_open_volume`: for reading only. Several processes may do so at the same time.
 */
#define HF_READ_ONLY 1

/**
 * `hf_open_volume`: make the volume in a new image file if there is none.
 */
#define HF_OPEN_OR_CREATE 2

/**
 * `hf_create_volume`: overwrite what the file or device holds.
 */
#define HF_FORCE 4

/**
 * A use does not change access times.
 */
#define HF_NOATIME 8

/**
 * Every change is durable when its call returns.
 */
#define HF_SYNC 16

/**
 * `hf_rename`: fail with `EEXIST` if the new name exists.
 */
#define HF_RENAME_NOREPLACE 1

/**
 * `hf_rename`: exchange the two names.
 */
#define HF_RENAME_EXCHANGE 2

/**
 * `hf_rename`: leave a whiteout at the old name.
 */
#define HF_RENAME_WHITEOUT 4

/**
 * `hf_setxattr`: fail with `EEXIST` if the attribute exists.
 */
#define HF_XATTR_CREATE 1

/**
 * `hf_setxattr`: fail with `ENODATA` if the attribute does not exist.
 */
#define HF_XATTR_REPLACE 2

/**
 * `hf_utimens`, `hf_chown`: a symbolic link itself.
 */
#define HF_NOFOLLOW 1

/**
 * `hf_warm`: read the content of files too.
 */
#define HF_WARM_CONTENT 1

/**
 * A listing of a directory; see `hf_opendir`.
 */
struct hf_dir;

/**
 * An open file; see `hf_open`.
 */
struct hf_file;

/**
 * A file system for one user, or a directory of one; see `hf_memory`, `hf_subdir`.
 */
struct hf_fs;

/**
 * How `hf_memory` makes a file system. 0 is the default of each field.
 */
struct hf_memory_options {
    /**
     * sizeof (struct hf_memory_options)
     */
    uint32_t size;
    /**
     * The mode of the root directory; 0: 0755.
     */
    uint32_t mode;
    /**
     * Most bytes of names and content; 0: no limit.
     */
    uint64_t bytes_max;
    /**
     * Most inodes; 0: no limit.
     */
    uint64_t inodes_max;
};

/**
 * How a volume is made or opened. 0 is the default of each field.
 */
struct hf_volume_options {
    /**
     * sizeof (struct hf_volume_options)
     */
    uint32_t size;
    /**
     * HF_READ_ONLY, HF_OPEN_OR_CREATE, HF_FORCE, HF_NOATIME, HF_SYNC
     */
    uint32_t flags;
    /**
     * Bytes of memory that all file systems of this process may take together.
     */
    uint64_t memory;
    /**
     * The longest time in milliseconds until a change is durable without hf_sync; 0: 5 seconds.
     */
    uint32_t commit_ms;
    /**
     * A new volume: the mode of the root directory; 0: 0755.
     */
    uint32_t mode;
    /**
     * A new volume: its bytes; 0: the free space of the host's file system.
     */
    uint64_t volume_size;
    /**
     * A new volume: the bytes of its journal; 0: chosen by the volume's size.
     */
    uint64_t journal_size;
    /**
     * A new volume: its name, at most 63 bytes and a NUL.
     */
    char label[64];
};

/**
 * Space and inodes of a file system, as struct statvfs.
 */
struct hf_statvfs {
    /**
     * sizeof (struct hf_statvfs): set it before the call.
     */
    uint32_t size;
    /**
     * 1 (ST_RDONLY) if it is read-only.
     */
    uint32_t f_flag;
    /**
     * Block size in bytes.
     */
    uint64_t f_bsize;
    /**
     * The unit of the numbers of blocks, in bytes.
     */
    uint64_t f_frsize;
    /**
     * Blocks.
     */
    uint64_t f_blocks;
    /**
     * Free blocks.
     */
    uint64_t f_bfree;
    /**
     * Free blocks that a file can get.
     */
    uint64_t f_bavail;
    /**
     * Inodes.
     */
    uint64_t f_files;
    /**
     * Free inodes.
     */
    uint64_t f_ffree;
    /**
     * Free inodes that a file can get.
     */
    uint64_t f_favail;
    /**
     * Longest name in bytes.
     */
    uint64_t f_namemax;
};

/**
 * A time, as struct timespec.
 */
struct hf_timespec {
    /**
     * Seconds since 1970.
     */
    int64_t tv_sec;
    /**
     * Nanoseconds: 0 to 999,999,999. `hf_utimens` takes UTIME_NOW and UTIME_OMIT, too.
     */
    int64_t tv_nsec;
};

/**
 * The attributes of an inode, as struct stat.
 */
struct hf_stat {
    /**
     * sizeof (struct hf_stat): set it before the call.
     */
    uint32_t size;
    /**
     * Type and permissions.
     */
    uint32_t st_mode;
    /**
     * The number of the inode.
     */
    uint64_t st_ino;
    /**
     * Length in bytes.
     */
    uint64_t st_size;
    /**
     * Space held, in units of 512 bytes.
     */
    uint64_t st_blocks;
    /**
     * The number of a device, as makedev(3) packs it.
     */
    uint64_t st_rdev;
    /**
     * Number of names.
     */
    uint32_t st_nlink;
    /**
     * Owner.
     */
    uint32_t st_uid;
    /**
     * Owning group.
     */
    uint32_t st_gid;
    /**
     * The preferred size of reads and writes.
     */
    uint32_t st_blksize;
    /**
     * Last access.
     */
    struct hf_timespec st_atim;
    /**
     * Last change of the content.
     */
    struct hf_timespec st_mtim;
    /**
     * Last change of the inode.
     */
    struct hf_timespec st_ctim;
    /**
     * Creation.
     */
    struct hf_timespec st_btim;
};

/**
 * An entry of a directory, as struct dirent.
 */
struct hf_dirent {
    /**
     * sizeof (struct hf_dirent): set it before the call.
     */
    uint32_t size;
    /**
     * 0, or a positive errno: why the attributes could not be read.
     */
    int32_t error;
    /**
     * The number of the inode.
     */
    uint64_t d_ino;
    /**
     * DT_REG, DT_DIR, DT_LNK, ...
     */
    uint32_t d_type;
    /**
     * Bytes of the name.
     */
    uint32_t d_namlen;
    /**
     * The name and a NUL.
     */
    char d_name[256];
};

/**
 * What `hf_read_many` read of one path.
 */
struct hf_content {
    /**
     * sizeof (struct hf_content): set that of the first one before the call.
     */
    uint32_t size;
    /**
     * 0, or a positive errno.
     */
    int32_t error;
    /**
     * Where the content begins in the buffer.
     */
    uint64_t offset;
    /**
     * The length of the file in bytes.
     */
    uint64_t length;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a file system in memory, which hf_close frees. `options` may be NULL.
 */
int hf_memory(const struct hf_memory_options *options, struct hf_fs **fs);

/**
 * Opens the volume in an image file or on a block device. `options` may be NULL.
 */
int hf_open_volume(const char *path, const struct hf_volume_options *options, struct hf_fs **fs);

/**
 * Makes an empty volume in a new image file or on a block device, and opens it. Content is
 * overwritten only with HF_FORCE; else it is EEXIST. `options` may be NULL.
 */
int hf_create_volume(const char *path, const struct hf_volume_options *options, struct hf_fs **fs);

/**
 * Closes a handle of a file system. That of hf_memory, hf_open_volume or hf_create_volume ends
 * the file system with all its handles: everything is made durable, and a volume is marked as
 * closed. The handle ends also when the result is an error.
 */
int hf_close(struct hf_fs *fs);

/**
 * Makes every earlier change durable.
 */
int hf_sync(struct hf_fs *fs);

/**
 * Space and inodes, used and free.
 */
int hf_statvfs(struct hf_fs *fs, struct hf_statvfs *space);

/**
 * Makes a handle for paths relative to a directory, as openat(2) has them. It stays the same
 * directory when that is renamed. Absolute paths start at the file system's root.
 */
int hf_subdir(struct hf_fs *fs, const char *path, struct hf_fs **dir);

/**
 * Makes a handle of the same directory for another user, without capabilities. `groups` are
 * `ngroups` supplementary groups. Files that it opens keep that user.
 */
int hf_as_user(struct hf_fs *fs,
               uint32_t uid,
               uint32_t gid,
               const uint32_t *groups,
               size_t ngroups,
               uint32_t umask,
               struct hf_fs **user);

/**
 * Makes a handle of the same directory for the superuser, which needs no privilege of this
 * process.
 */
int hf_as_root(struct hf_fs *fs, struct hf_fs **root);

/**
 * Opens a file as open(2): `flags` are its O_RDONLY, O_CREAT, ..., `mode` that of a new file.
 */
int hf_open(struct hf_fs *fs, const char *path, int flags, uint32_t mode, struct hf_file **file);

/**
 * Closes a file. It makes nothing durable: see hf_fsync.
 */
int hf_close_file(struct hf_file *file);

/**
 * Reads at an offset, as pread(2). Fewer bytes than `size` only at the end of the file.
 */
ssize_t hf_pread(struct hf_file *file, void *buffer, size_t size, int64_t offset);

/**
 * Writes at an offset, as pwrite(2); with O_APPEND at the end of the file.
 */
ssize_t hf_pwrite(struct hf_file *file, const void *buffer, size_t size, int64_t offset);

/**
 * Makes content and attributes durable.
 */
int hf_fsync(struct hf_file *file);

/**
 * Makes the content durable, and as much as reading it back needs.
 */
int hf_fdatasync(struct hf_file *file);

/**
 * Cuts a file, or extends it with a hole.
 */
int hf_ftruncate(struct hf_file *file, int64_t length);

/**
 * The attributes of an open file.
 */
int hf_fstat(struct hf_file *file, struct hf_stat *attr);

/**
 * The attributes of what a path leads to.
 */
int hf_stat(struct hf_fs *fs, const char *path, struct hf_stat *attr);

/**
 * As hf_stat, of a symbolic link itself.
 */
int hf_lstat(struct hf_fs *fs, const char *path, struct hf_stat *attr);

/**
 * May the user of the handle do this, as access(2): R_OK, W_OK, X_OK, F_OK?
 */
int hf_access(struct hf_fs *fs, const char *path, int mode);

/**
 * Changes permission bits.
 */
int hf_chmod(struct hf_fs *fs, const char *path, uint32_t mode);

/**
 * Changes owner and group; (uint32_t)-1 leaves one. `flags` is 0 or HF_NOFOLLOW.
 */
int hf_chown(struct hf_fs *fs, const char *path, uint32_t uid, uint32_t gid, uint32_t flags);

/**
 * Sets the times of last access and modification, as utimensat(2): `times` has both of them;
 * NULL: now. `flags` is 0 or HF_NOFOLLOW.
 */
int hf_utimens(struct hf_fs *fs, const char *path, const struct hf_timespec *times, uint32_t flags);

/**
 * As hf_ftruncate, by path.
 */
int hf_truncate(struct hf_fs *fs, const char *path, int64_t length);

/**
 * Makes a directory.
 */
int hf_mkdir(struct hf_fs *fs, const char *path, uint32_t mode);

/**
 * Removes a name that is not that of a directory.
 */
int hf_unlink(struct hf_fs *fs, const char *path);

/**
 * Removes an empty directory.
 */
int hf_rmdir(struct hf_fs *fs, const char *path);

/**
 * Renames, as renameat2(2): `from` is relative to `from_dir`, `to` to `to_dir`, which may be
 * the same handle. `flags` is 0 or HF_RENAME_*.
 */
int hf_rename(struct hf_fs *from_dir,
              const char *from,
              struct hf_fs *to_dir,
              const char *to,
              uint32_t flags);

/**
 * Makes another name of a file, as linkat(2). A symbolic link is not followed.
 */
int hf_link(struct hf_fs *from_dir, const char *from, struct hf_fs *to_dir, const char *to);

/**
 * Makes a symbolic link.
 */
int hf_symlink(struct hf_fs *fs, const char *target, const char *path);

/**
 * The target of a symbolic link, as readlink(2): without a NUL, cut to `size` bytes.
 */
ssize_t hf_readlink(struct hf_fs *fs, const char *path, char *buffer, size_t size);

/**
 * The value of an extended attribute, as getxattr(2); `size` 0 asks for its length.
 */
ssize_t hf_getxattr(struct hf_fs *fs, const char *path, const char *name, void *value, size_t size);

/**
 * Sets an extended attribute. `flags` is 0 or HF_XATTR_*.
 */
int hf_setxattr(struct hf_fs *fs,
                const char *path,
                const char *name,
                const void *value,
                size_t size,
                uint32_t flags);

/**
 * The names of the extended attributes, a NUL behind each, as listxattr(2); `size` 0 asks for
 * their length.
 */
ssize_t hf_listxattr(struct hf_fs *fs, const char *path, char *list, size_t size);

/**
 * Removes an extended attribute.
 */
int hf_removexattr(struct hf_fs *fs, const char *path, const char *name);

/**
 * Begins a listing of a directory.
 */
int hf_opendir(struct hf_fs *fs, const char *path, struct hf_dir **dir);

/**
 * The next entry of a listing, without `.` and `..`, and its attributes unless `attr` is NULL.
 * Returns 1, or 0 at the end. If `entry->error` is not 0, the attributes could not be read,
 * and `attr` is unchanged.
 */
int hf_readdirplus(struct hf_dir *dir, struct hf_dirent *entry, struct hf_stat *attr);

/**
 * Ends a listing.
 */
int hf_closedir(struct hf_dir *dir);

/**
 * The attributes of up to `count` inodes of the whole file system, in the order of numbers,
 * from the one behind `*cursor`: 0 at first. `attrs` has `count` structs, and the `size` of
 * the first one is that of each. Returns their number, 0 at the end. Only for the superuser.
 */
ssize_t hf_bulkstat(struct hf_fs *fs, uint64_t *cursor, struct hf_stat *attrs, size_t count);

/**
 * Reads whole files, one behind the other into `buffer`. `contents` has `count` structs, and
 * the `size` of the first one is that of each: path by path an error, or where the content is.
 * Returns how many paths have an answer; the others did not fit, and are for the next call. A
 * file that is longer than the buffer has the error ERANGE, and its length.
 */
ssize_t hf_read_many(struct hf_fs *fs,
                     const char *const *paths,
                     size_t count,
                     void *buffer,
                     size_t size,
                     struct hf_content *contents);

/**
 * Reads the attributes of all below a directory into memory and, with HF_WARM_CONTENT in
 * `flags`, the content of files. Returns the number of names. A name that cannot be read is
 * skipped; the result is then an error.
 */
ssize_t hf_warm(struct hf_fs *fs, const char *path, uint32_t flags);

/**
 * Reads the inodes of at most `names` names of a directory into memory, in few reads of the
 * device; 0: as many as are read at once. It goes on behind `*cursor`: 0 at first. Returns the
 * number of names, 0 at the end.
 */
ssize_t hf_prefetch(struct hf_fs *fs, const char *path, uint64_t *cursor, uint64_t names);

/**
 * Why the last call that failed on this thread did: what it was about, and a remedy. Empty if
 * none did. The text is valid until the next failure on this thread.
 */
const char *hf_last_error(void);

/**
 * The version of the library, such as "0.2.0".
 */
const char *hf_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOLDFAST_H */
