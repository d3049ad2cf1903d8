/* record/open.c: NAME.part and everything in it that does not depend on rows. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

void weir_dump_options_init(weir_dump_options *o)
{
    memset(o, 0, sizeof *o);
    o->compress = 1;
}

static weir_status create_file(weir_dump *d, bool force, weir_err *err)
{
    WEIR_TRY(weir_dump_take_part(d, force, err));
    d->file = weir_h5_create_file(d->part);
    if (d->file < 0)
        return weir_h5_fail(err, "cannot create %s", d->part);
    weir_behind_init(&d->writer.behind, d->file);
    return WEIR_OK;
}

static weir_status put_header(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    char now[32];
    time_t t = time(NULL);
    struct tm tm;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    const struct {
        const char *name, *text;
    } texts[] = {
        {"format", WEIR_DUMP_FORMAT},
        {"weir_version", weir_version()},
        {"command_line", o->command_line},
        {"time_utc", now},
        {"model", h->model},
        {"family", h->family},
        {"fingerprint", h->fingerprint},
        {"tokenizer_fingerprint", h->tokenizer_fingerprint},
        {"bos", o->bos},
        {"dtype", h->dtype},
        {"kernel", o->kernel},
        {"interventions", o->interventions ? o->interventions : "[]"},
        {"edits", "[]"},
    };
    const struct {
        const char *name;
        int64_t value;
    } ints[] = {
        {"format_version", WEIR_DUMP_VERSION}, {"ctx", d->ctx}, {"stride", o->stride},
        {"threads", o->run_threads},           {"complete", 0},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        WEIR_TRY(weir_h5_put_str(d->file, texts[i].name, texts[i].text, err));
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        WEIR_TRY(weir_h5_put_int(d->file, ints[i].name, ints[i].value, err));
    return WEIR_OK;
}

static weir_status put_vocab(weir_dump *d, const weir_dump_header *h, weir_err *err)
{
    weir_strings vocab;
    memset(&vocab, 0, sizeof vocab);
    weir_status st = weir_strings_create(&vocab, d->file, "vocab", true, &d->writer, err);
    for (int64_t i = 0; i < h->n_vocab && !st; i++)
        st = weir_strings_append(&vocab, &d->writer, h->vocab(h->user, (int32_t)i), err);
    if (!st)
        st = weir_strings_flush(&vocab, &d->writer, err);
    weir_strings_close(&vocab);
    return st;
}

static weir_status create_tokens(weir_dump *d, weir_err *err)
{
    static const struct {
        const char *name;
        weir_elem elem;
    } columns[WEIR_TOK_COLUMNS] = {
        [WEIR_TOK_ID] = {"id", WEIR_ELEM_I32},
        [WEIR_TOK_DOC] = {"doc", WEIR_ELEM_I64},
        [WEIR_TOK_POS] = {"pos", WEIR_ELEM_I64},
        [WEIR_TOK_CTX_POS] = {"ctx_pos", WEIR_ELEM_I64},
        [WEIR_TOK_BYTE_OFF] = {"byte_off", WEIR_ELEM_I64},
        [WEIR_TOK_BYTE_LEN] = {"byte_len", WEIR_ELEM_I64},
        [WEIR_TOK_FLAGS] = {"flags", WEIR_ELEM_U8},
        [WEIR_TOK_LOGPROB] = {"logprob", WEIR_ELEM_F32},
    };
    const float nan = NAN;
    d->tokens = weir_h5_create_group(d->file, "tokens", false);
    if (d->tokens < 0)
        return weir_h5_fail(err, "cannot create group tokens");
    for (int i = 0; i < WEIR_TOK_COLUMNS; i++) {
        weir_tiled_spec spec = weir_tiled_column(columns[i].elem);
        if (i == WEIR_TOK_LOGPROB && !d->logprob)
            continue;
        spec.fill = i == WEIR_TOK_LOGPROB ? &nan : NULL;
        WEIR_TRY(weir_tiled_create(&d->token[i], d->tokens, columns[i].name, &spec, &d->writer, err));
    }
    weir_tiled_spec row = weir_tiled_column(WEIR_ELEM_I64);
    return weir_tiled_create(&d->row, d->file, "row", &row, &d->writer, err);
}

/* Hook points keep the order in which they fire, also when a reader lists them. */
static weir_status create_activations(weir_dump *d, weir_err *err)
{
    d->activations = weir_h5_create_group(d->file, "activations", true);
    return d->activations >= 0 ? WEIR_OK : weir_h5_fail(err, "cannot create group activations");
}

static weir_status create_all(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    WEIR_TRY(weir_tile_writer_init(&d->writer, o->compress, o->threads, err));
    WEIR_TRY(weir_dump_check_target(d->path, err));
    WEIR_TRY(create_file(d, o->force, err));
    d->scales.file = d->file;
    WEIR_TRY(put_header(d, h, o, err));
    WEIR_TRY(put_vocab(d, h, err));
    WEIR_TRY(weir_doc_table_create(&d->docs, d->file, &d->writer, err));
    WEIR_TRY(create_tokens(d, err));
    return create_activations(d, err);
}

static weir_status alloc_dump(weir_dump **out, const char *path, weir_err *err)
{
    weir_dump *d = weir_calloc(1, sizeof *d);
    size_t n = strlen(path);
    if (!d)
        return weir_nomem(err, "a dump");
    d->file = d->activations = d->tokens = d->progress = -1;
    d->path = weir_strndup(path, n);
    d->part = weir_calloc(n + sizeof ".part", 1);
    if (!d->path || !d->part) {
        weir_free(d->path);
        weir_free(d->part);
        weir_free(d);
        return weir_nomem(err, "a dump");
    }
    memcpy(d->part, path, n);
    memcpy(d->part + n, ".part", sizeof ".part");
    *out = d;
    return WEIR_OK;
}

weir_status weir_dump_new(weir_dump **out, const char *path, const weir_dump_header *h, const weir_dump_options *o,
                          weir_err *err)
{
    weir_h5_quiet q;
    weir_dump *d = NULL;
    if (o->compress < 0 || o->compress > 9)
        return weir_fail(err, WEIR_E_ARG, "compression level %d is not in 0..9", o->compress);
    WEIR_TRY(alloc_dump(&d, path, err));
    d->ctx = o->ctx > 0 ? o->ctx : h->ctx;
    d->logprob = o->logprob;
    d->from_passes = o->from_passes;
    d->last_tag = INT64_MIN;
    weir_h5_quiet_begin(&q);
    weir_status st = create_all(d, h, o, err);
    if (st) {
        weir_err_where(err, path, NULL, -1);
        weir_dump_drop_part(d);
        weir_dump_free(d);
        d = NULL;
    }
    weir_h5_quiet_end(&q);
    *out = d;
    return st;
}

int weir_dump_find_act(const weir_dump *d, const char *name)
{
    for (int i = 0; i < d->n_acts; i++)
        if (!strcmp(d->act[i].name, name))
            return i;
    return -1;
}

weir_status weir_dump_add_point(weir_dump *d, const weir_point *p, const int64_t *units, int64_t n, weir_err *err)
{
    weir_h5_quiet q;
    if (d->begun)
        return weir_fail(err, WEIR_E_ARG, "hook points must be declared before the first row");
    if (weir_dump_find_act(d, p->name) >= 0)
        return WEIR_OK;
    weir_act *grown = weir_realloc(d->act, (size_t)d->n_acts + 1, sizeof *grown);
    if (!grown)
        return weir_nomem(err, "a dump's datasets");
    d->act = grown;
    weir_act *a = &grown[d->n_acts];
    memset(a, 0, sizeof *a);
    weir_h5_quiet_begin(&q);
    weir_status st = weir_act_create(a, d->activations, p, units, n, d->ctx, &d->writer, err);
    if (st) {
        weir_act_close(a);
        d->failed = st;
        weir_err_where(err, d->path, p->name, -1);
    } else {
        d->n_acts++;
    }
    weir_h5_quiet_end(&q);
    return st;
}
