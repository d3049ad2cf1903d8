/* A merged checkpoint from a GGUF file: the family's Hugging Face class in F32, tensor by tensor, and the tokenizer. */
#include <stdio.h>
#include <string.h>

#include <weir/json.h>
#include <weir/tokenizer.h>

#include "../base/log.h"
#include "../io/gguf.h"
#include "../io/safetensors_write.h"
#include "../model/export.h"
#include "merge.h"

#define CONFIG "config.json"
#define TENSORS "model.safetensors"
#define TOKENIZER "tokenizer.json"
#define TOKENIZER_CONFIG "tokenizer_config.json"
static const char *const FILES[] = {CONFIG, TENSORS, TOKENIZER, TOKENIZER_CONFIG, NULL};
static const weir_outdir_kind KIND = {"a merged checkpoint", FILES};

/* One writing of a directory. */
typedef struct writing {
    const weir_merging *g;
    weir_export *x;
    weir_gguf gguf;
    weir_tokenizer *tok; /* NULL: the file has none */
    weir_str chat;       /* the chat template, within gguf */
    weir_err *err;
    weir_status status; /* of a file that is being written, but for its stream */
} writing;

/* --- the tokenizer */

static weir_status open_tokenizer(writing *w, weir_err *err)
{
    const char *path = weir_model_info_of(w->g->m)->path;
    bool found;
    WEIR_TRY(weir_gguf_open(&w->gguf, path, err));
    if (!weir_gguf_find(&w->gguf, "tokenizer.ggml.model")) {
        weir_logf(&w->g->o->log, WEIR_LOG_WARN, "%s has no tokenizer: none is written", path);
        return WEIR_OK;
    }
    WEIR_TRY(weir_gguf_str(&w->gguf, "tokenizer.chat_template", &w->chat, &found, err));
    WEIR_TRY(weir_tokenizer_open(&w->tok, path, &w->g->o->log, err));
    if (weir_tokenizer_may_write(w->tok, &w->g->o->log, err) != WEIR_OK)
        return weir_err_where(err, path, NULL, -1);
    return WEIR_OK;
}

static void write_tokenizer(void *ctx, FILE *out)
{
    writing *w = ctx;
    w->status = weir_tokenizer_write(w->tok, out, w->err);
}

static void write_tokenizer_config(void *ctx, FILE *out)
{
    const writing *w = ctx;
    weir_tokenizer_write_config(w->tok, weir_model_info_of(w->g->m)->ctx, w->chat, out);
}

/* --- config.json */

static void write_id(weir_jsonw *j, int32_t id)
{
    if (id < 0)
        weir_jsonw_null(j);
    else
        weir_jsonw_int(j, id);
}

/* The ids of BOS, and of all tokens that end a text: EOS first. The class would take its own where they are absent. */
static void write_ids(const writing *w, weir_jsonw *j)
{
    const int32_t *end = NULL, eos = w->tok ? weir_tokenizer_eos(w->tok) : -1;
    const int64_t ends = w->tok ? weir_tokenizer_ends(w->tok, &end) : 0;
    weir_jsonw_key(j, "bos_token_id");
    write_id(j, w->tok ? weir_tokenizer_bos(w->tok) : -1);
    weir_jsonw_key(j, "eos_token_id");
    if (ends < 2) {
        write_id(j, ends ? end[0] : eos);
        return;
    }
    weir_jsonw_array(j);
    if (eos >= 0)
        weir_jsonw_int(j, eos);
    for (int64_t i = 0; i < ends; i++)
        if (end[i] != eos)
            weir_jsonw_int(j, end[i]);
    weir_jsonw_end(j);
}

static void write_config(void *ctx, FILE *out)
{
    const writing *w = ctx;
    weir_jsonw j;
    weir_jsonw_init(&j, out);
    weir_jsonw_object(&j);
    weir_export_config(w->x, &j);
    write_ids(w, &j);
    weir_jsonw_end(&j);
    fputc('\n', out);
}

/* --- model.safetensors */

static void write_head(const writing *w, FILE *out)
{
    weir_st_head h;
    weir_st_head_begin(&h, out, "pt");
    for (int64_t i = 0; i < weir_export_n(w->x); i++) {
        const weir_export_tensor *t = weir_export_at(w->x, i);
        const int64_t shape[] = {t->rows, t->width};
        weir_st_head_add(&h, t->name, t->rank, t->rank > 1 ? shape : shape + 1);
    }
    weir_st_head_end(&h);
}

/* The tensor that is being written. */
typedef struct passing {
    const writing *w;
    const weir_export_tensor *t;
    float *rows; /* [WEIR_EXPORT_ROWS, width] */
    FILE *out;
} passing;

static const void *exported_rows(void *ctx, int64_t row, int64_t n)
{
    const passing *p = ctx;
    weir_export_rows(p->w->x, p->t, row, n, p->rows);
    return p->rows;
}

static weir_status put_rows(void *ctx, int64_t row, int64_t n, const void *bytes, size_t size, weir_err *err)
{
    const passing *p = ctx;
    (void)row, (void)n, (void)err;
    fwrite(bytes, 1, size, p->out); /* whether that went well is asked of the stream, at its end */
    return WEIR_OK;
}

/* The module that the tensor is the weight of, if an edit changes it. */
static bool find_touched(const weir_merging *g, const weir_export_tensor *t, weir_module *module)
{
    static const char end[] = ".weight";
    const size_t n = strlen(t->name), tail = sizeof end - 1;
    bool touched = false;
    if (n < tail || strcmp(t->name + n - tail, end) != 0 || !weir_module_find(module, g->m, t->name, n - tail))
        return false;
    for (int i = 0; i < module->n; i++)
        touched |= weir_merge_touches(g, module->layer, module->matrix[i]);
    return touched;
}

_Static_assert((int)WEIR_MERGE_ROWS == (int)WEIR_EXPORT_ROWS, "rows are read as they are merged");

static weir_status write_tensor(passing *p, weir_err *err)
{
    const weir_merging *g = p->w->g;
    const weir_export_tensor *t = p->t;
    weir_module module;
    if (find_touched(g, t, &module)) {
        const weir_merge_tensor from = {.module = &module,
                                        .file = weir_model_info_of(g->m)->path,
                                        .name = t->name,
                                        .offset = -1,
                                        .dtype = WEIR_F32,
                                        .rows = t->rows,
                                        .width = t->width,
                                        .row_of = weir_module_row,
                                        .read = exported_rows,
                                        .ctx = p};
        return weir_merge_rows(g, &from, put_rows, p, err);
    }
    for (int64_t row = 0; row < t->rows; row += WEIR_EXPORT_ROWS) {
        const int64_t n = t->rows - row < WEIR_EXPORT_ROWS ? t->rows - row : WEIR_EXPORT_ROWS;
        if (g->o->stop && g->o->stop(g->o->user))
            return WEIR_STOP;
        fwrite(exported_rows(p, row, n), sizeof(float), (size_t)(n * t->width), p->out);
    }
    return WEIR_OK;
}

static void write_tensors(void *ctx, FILE *out)
{
    writing *w = ctx;
    passing p = {.w = w, .out = out};
    int64_t most = 0;
    for (int64_t i = 0; i < weir_export_n(w->x); i++)
        most = weir_export_at(w->x, i)->width > most ? weir_export_at(w->x, i)->width : most;
    p.rows = weir_calloc((size_t)most, WEIR_EXPORT_ROWS * sizeof *p.rows);
    if (!p.rows) {
        w->status = weir_nomem(w->err, "rows of a tensor");
        return;
    }
    write_head(w, out);
    for (int64_t i = 0; i < weir_export_n(w->x) && w->status == WEIR_OK && !ferror(out); i++) {
        p.t = weir_export_at(w->x, i);
        w->status = write_tensor(&p, w->err);
    }
    weir_free(p.rows);
}

/* --- the directory */

static weir_status put(writing *w, weir_outdir *d, const char *name, void (*write)(void *ctx, FILE *out), weir_err *err)
{
    WEIR_TRY(weir_outdir_put(d, name, write, w, err));
    return w->status;
}

static weir_status put_files(writing *w, weir_outdir *d, weir_err *err)
{
    WEIR_TRY(put(w, d, CONFIG, write_config, err));
    if (w->tok) {
        WEIR_TRY(put(w, d, TOKENIZER, write_tokenizer, err));
        WEIR_TRY(put(w, d, TOKENIZER_CONFIG, write_tokenizer_config, err));
    }
    return put(w, d, TENSORS, write_tensors, err);
}

static weir_status write_dir(writing *w, const char *dir, weir_err *err)
{
    weir_outdir *d = NULL;
    WEIR_TRY(weir_outdir_may(dir, &KIND, false, err));
    WEIR_TRY(weir_export_new(&w->x, w->g->m, err));
    WEIR_TRY(open_tokenizer(w, err));
    WEIR_TRY(weir_outdir_open(&d, dir, &KIND, err));
    const weir_status s = put_files(w, d, err);
    if (s == WEIR_OK)
        return weir_outdir_commit(d, err);
    weir_outdir_abort(d);
    return s;
}

weir_status weir_merge_gguf(const weir_merging *g, const char *dir, weir_err *err)
{
    writing w = {.g = g, .err = err};
    const weir_status s = write_dir(&w, dir, err);
    weir_export_free(w.x);
    weir_tokenizer_free(w.tok);
    weir_gguf_close(&w.gguf);
    return s;
}
