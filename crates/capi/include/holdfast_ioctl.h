/*
 * The ioctl(2) of a directory on a mount of Holdfast, for programs that use no library: see
 * docs/book/reference/prefetch.md.
 */

#ifndef HOLDFAST_IOCTL_H
#define HOLDFAST_IOCTL_H

#include <stdint.h>
#include <sys/ioctl.h>

/* Which inodes to read, and how far the call came. */
struct holdfast_prefetch {
    uint32_t size;        /* sizeof (struct holdfast_prefetch): 56 */
    uint32_t flags;       /* 0 */
    uint64_t cursor;      /* in: 0, or where to go on; out: how far it came */
    uint64_t entries;     /* names to go over, at most; 0: as many as are brought at once */
    uint64_t bytes;       /* 0 */
    uint64_t done;        /* out: names that were gone over; 0 at the end */
    uint64_t reserved[2]; /* 0 */
};

/* On a directory that is open for reading. ENOTTY: no directory, or not on Holdfast. */
#define HOLDFAST_IOC_PREFETCH _IOWR('h', 0xf7, struct holdfast_prefetch)

#endif
