// Statistics file: counters that a loop publishes under a seqlock, and others map and read.
//
// The file describes itself: header, names of the fields, names of a row's columns, one line of
// values, then the rows (one per host in the controller, one per V2V flow in a coordinator). Native
// byte order: readers are on the same machine. xco/protocol/stats.py is the reader.
#ifndef XCO_COMMON_STATS_H
#define XCO_COMMON_STATS_H

#include <stddef.h>
#include <stdint.h>

#define XCO_STATS_MAGIC "XCOSTAT1"
#define XCO_STATS_NAME_BYTES 32 // length of a field's name, zero-padded, the last byte always zero

struct xco_stats_header {
    char magic[8];
    uint32_t fields; // values in the line
    uint32_t columns; // values in a row
    uint32_t rows; // number of rows that fit
    uint32_t pid; // of the writer
    uint64_t sequence; // seqlock: odd while the writer writes
    uint64_t updated_ns; // CLOCK_MONOTONIC of the last write
    uint64_t rows_used;
    uint64_t reserved[2];
};

// Names of the published values; the arrays must only outlive xco_stats_open.
struct xco_stats_layout {
    const char *const *field_names;
    size_t fields;
    const char *const *column_names;
    size_t columns;
    size_t rows;
};

struct xco_stats {
    struct xco_stats_header *header; // the mapping; NULL: nothing is published
    size_t bytes;
    uint64_t *values; // `fields` numbers
    uint64_t *table; // `rows` times `columns` numbers
    size_t columns;
};

// Creates a new file, mode 0644, and renames it into place; 0, or -1 with errno.
int xco_stats_open(struct xco_stats *stats, const char *path,
                   const struct xco_stats_layout *layout);

// Change values and rows only between begin and end; readers wait meanwhile.
void xco_stats_begin(struct xco_stats *stats);
void xco_stats_end(struct xco_stats *stats, uint64_t now_ns);

// Row `index`: `columns` numbers.
uint64_t *xco_stats_row(struct xco_stats *stats, size_t index);

// Unmaps the file and leaves it in place for the last reader.
void xco_stats_close(struct xco_stats *stats);

#endif
