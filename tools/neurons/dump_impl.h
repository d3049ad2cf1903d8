/* neurons/dump_impl.h: inside of a search from a dump: dump.c opens it, dump_choose.c finds hook points and units,
 * dump_feed.c reads rows, dump_norm.c finds those of high norm. */
#ifndef WEIR_NEURONS_DUMP_IMPL_H
#define WEIR_NEURONS_DUMP_IMPL_H

#include "dump.h"

/* What a table is read from. */
typedef struct weir_dump_source {
    int hook;        /* of the reader */
    bool gate_act;   /* the activation is applied to what was recorded */
    int64_t *unit;   /* [n] of the table; NULL: all */
    int64_t *column; /* [n] where the hook stores them */
    int64_t n;
} weir_dump_source;

enum { WEIR_KIND_BOS = 1, WEIR_KIND_SPECIAL = 2 };

struct weir_neurons_dump {
    const weir_cli *cli;
    weir_neurons_dump_options o;
    weir_dump_reader *r;
    char *interventions; /* and edits: JSON */
    int64_t rows;
    int64_t first_doc;     /* a shard's documents count from this number */
    int64_t shard, shards; /* 0, 0: the whole text */
    int n;
    weir_neurons_table *table; /* [n] */
    weir_dump_source *source;  /* [n] */
    int64_t n_vocab;
    uint8_t *kind; /* [n_vocab] WEIR_KIND_* of every token */
};

/* Fills table and source. */
WEIR_CHECKED weir_status weir_dump_choose(weir_neurons_dump *d, weir_err *err);

/* Rows of high norm in one layer: a bit for each row of the dump. */
typedef struct weir_high_rows {
    uint8_t *bit; /* NULL: none was looked for */
} weir_high_rows;
WEIR_CHECKED weir_status weir_high_rows_find(weir_high_rows *h, weir_neurons_dump *d, int layer, weir_err *err);

#endif
