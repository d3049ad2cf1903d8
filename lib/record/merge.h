/* record/merge.h: joining files that belong together (weir_dump_merge).
 *
 * merge.c orders the files, checks that they belong together and makes the result's file; what is in it and how it is
 * joined is one entry of a table for each `format` of ours (weir_merge_kind). merge_facts.c says what of two files must
 * be equal, merge_dump.c is the entry for dumps, with merge_objects.c, merge_rows.c, merge_names.c and
 * merge_virtual.c.
 */
#ifndef WEIR_MERGE_H
#define WEIR_MERGE_H

#include <weir/record.h>

#include "base/mem.h"
#include "infile.h"
#include "scale.h"
#include "tiled.h"

/* One of the files. */
typedef struct weir_merge_part {
    const char *path;
    int64_t shard, shards;                   /* shards 0: it is no shard */
    int64_t first_doc, text_docs, text_size; /* of a shard */
    int64_t source[2];                       /* of a shard: the reader's numbers of its first and last source */
    uint64_t run_options;                    /* of a shard: hash of that attribute */
    int64_t rows, docs;
    int64_t rows_before, docs_before; /* of all parts that stand before it */
} weir_merge_part;

typedef struct weir_merge_kind weir_merge_kind;

typedef struct weir_merge {
    const weir_merge_options *o;
    const char *out;
    const weir_merge_kind *kind;
    weir_merge_part *part; /* [n] in the order of the result */
    int n;
    int64_t rows, docs, datasets; /* of the result */
    hid_t file;                   /* OUT.part, its root attributes written */
    double done, total;           /* bytes, for o->progress */
} weir_merge;

/* How files of one format are joined. */
struct weir_merge_kind {
    const char *format;
    int64_t version;
    /* Sets rows and docs of a part. */
    weir_status (*measure)(weir_merge_part *p, weir_infile *f, weir_err *err);
    /* Everything but the root attributes, into m->file. */
    weir_status (*join)(weir_merge *m, weir_err *err);
};
extern const weir_merge_kind weir_merge_dumps;

/* Asked at every step of long work: WEIR_STOP when the caller wants the end. bytes: done since the last call. */
WEIR_CHECKED weir_status weir_merge_step(weir_merge *m, double bytes);

/* --- merge_facts.c */

/* One thing that must be equal in all parts: "type" of "tokens/id" is "int32". */
typedef struct weir_fact {
    const char *object; /* path without a leading slash; "" for the file itself */
    const char *what, *value;
} weir_fact;

typedef struct weir_facts {
    weir_fact *fact; /* [n] in the order in which the file is walked */
    int64_t n;
    weir_arena own;
} weir_facts;

/* Zero it before; free in every case. Refuses what no file of ours has: links, virtual datasets. */
WEIR_CHECKED weir_status weir_facts_read(weir_facts *s, weir_infile *f, weir_err *err);
/* Fails with the first thing that differs between b and a, in the words of someone who has both files. */
WEIR_CHECKED weir_status weir_facts_compare(const weir_facts *a, const char *a_path, const weir_facts *b,
                                            weir_err *err);
void weir_facts_free(weir_facts *s);
/* Is this root attribute a thing of one run alone, which need not be equal? */
bool weir_fact_is_free(const char *attribute);

/* Copies an attribute to another object, whatever its type. */
WEIR_CHECKED weir_status weir_merge_copy_attribute(hid_t from, hid_t to, const char *name, weir_err *err);

/* --- merge_names.c: /sources */

/* Which entry of the result's /sources each entry of a part's becomes: [n] of them. */
typedef struct weir_source_map {
    int32_t *to;
    int64_t n;
} weir_source_map;
/* Writes /sources of the result and fills map[m->n] (zeroed before). Free each `to` in every case. */
WEIR_CHECKED weir_status weir_merge_names(weir_merge *m, weir_tile_writer *w, weir_source_map *map, weir_err *err);

/* --- merge_virtual.c */

/* Creates dataset `name` as a virtual one over the dataset of that name in every part; like: that of the first part. */
WEIR_CHECKED weir_status weir_merge_virtual(const weir_merge *m, const char *name, hid_t like, hid_t *out,
                                            weir_err *err);

#endif
