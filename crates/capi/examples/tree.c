/*
 * Prints what is in a volume, as tree(1) does: cc tree.c $(pkg-config --cflags --libs holdfast)
 *
 *   tree VOLUME [DIRECTORY]    the volume is an image file or a block device
 */

#include <holdfast.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Prints a directory and all below it. Returns 0, or -1 after a message. */
static int print_tree(struct hf_fs *dir, int depth)
{
    struct hf_dir *listing;
    struct hf_dirent entry;
    struct hf_stat attr;
    int more, failed = 0;

    memset(&entry, 0, sizeof entry);
    memset(&attr, 0, sizeof attr);
    entry.size = sizeof entry;
    attr.size = sizeof attr;
    if (hf_opendir(dir, ".", &listing) != 0) {
        fprintf(stderr, "tree: %s\n", hf_last_error());
        return -1;
    }
    while ((more = hf_readdirplus(listing, &entry, &attr)) > 0) {
        printf("%*s%s", 4 * depth, "", entry.d_name);
        if (entry.error != 0) {
            printf(": %s\n", strerror(entry.error));
        } else if (S_ISDIR(attr.st_mode)) {
            struct hf_fs *below;

            printf("/\n");
            if (hf_subdir(dir, entry.d_name, &below) != 0) {
                fprintf(stderr, "tree: %s\n", hf_last_error());
                failed = -1;
                continue;
            }
            if (print_tree(below, depth + 1) != 0)
                failed = -1;
            hf_close(below);
        } else {
            printf("  %llu bytes\n", (unsigned long long)attr.st_size);
        }
    }
    if (more < 0) {
        fprintf(stderr, "tree: %s\n", hf_last_error());
        failed = -1;
    }
    hf_closedir(listing);
    return failed;
}

int main(int argc, char **argv)
{
    struct hf_volume_options options;
    struct hf_fs *fs, *top;
    int failed;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: tree VOLUME [DIRECTORY]\n");
        return 2;
    }
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = HF_READ_ONLY;
    if (hf_open_volume(argv[1], &options, &fs) != 0) {
        fprintf(stderr, "tree: %s\n", hf_last_error());
        return 1;
    }
    failed = hf_subdir(fs, argc == 3 ? argv[2] : "/", &top);
    if (failed != 0)
        fprintf(stderr, "tree: %s\n", hf_last_error());
    else
        failed = print_tree(top, 0);
    /* The handle of the volume closes all others. */
    if (hf_close(fs) != 0) {
        fprintf(stderr, "tree: %s\n", hf_last_error());
        failed = -1;
    }
    return failed != 0;
}
