/* record/source.h: a dump without a model at hand. create.c fills a weir_dump_header from a model and a tokenizer;
 * tests fill one by hand. Nothing of HDF5 shows here. */
#ifndef WEIR_RECORD_SOURCE_H
#define WEIR_RECORD_SOURCE_H

#include <weir/record.h>

/* What a dump says of where it comes from. Borrowed during weir_dump_new. */
typedef struct weir_dump_header {
    const char *model, *family, *fingerprint, *tokenizer_fingerprint, *dtype;
    int64_t ctx; /* keys of scores and pattern, where the options do not say */
    int64_t n_vocab;
    weir_str (*vocab)(const void *user, int32_t id);
    const void *user;
} weir_dump_header;

/* Creates PATH.part with everything that does not depend on hooks or fields. */
WEIR_CHECKED weir_status weir_dump_new(weir_dump **out, const char *path, const weir_dump_header *h,
                                       const weir_dump_options *o, weir_err *err);
/* Declares one hook point; units as in weir_act_create. Before the first document or row. */
WEIR_CHECKED weir_status weir_dump_add_point(weir_dump *d, const weir_point *p, const int64_t *units, int64_t n,
                                             weir_err *err);

#endif
