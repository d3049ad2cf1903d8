/* An edit as a directory that Hugging Face PEFT loads: adapter_config.json, adapter_model.safetensors, and edit.json.
 *
 * Each module that the edit touches has a rank of its own (rank_pattern), and alpha = rank, so that nothing is scaled.
 * A module that holds q, k and v has the rows of U of all of them, each once if they are the same. */
#include <stdio.h>
#include <string.h>

#include <weir/json.h>

#include "../io/filemap.h"
#include "../io/outdir.h"
#include "../io/safetensors_write.h"
#include "../model/modules.h"
#include "config.h"

static const char *const FILES[] = {WEIR_EDIT_CONFIG, WEIR_EDIT_TENSORS, WEIR_EDIT_JSON, NULL};
static const weir_outdir_kind KIND = {"an edit", FILES};

/* A module as it is written. */
typedef struct part {
    weir_module module;
    const weir_update *update[3]; /* [module.n]; NULL: this matrix is not changed */
    bool shared;                  /* all have one and the same U */
    int64_t r;
} part;

typedef struct saver {
    const weir_edit *e;
    const weir_model *m;
    part *part;
    int64_t n;
    const char *json;
} saver;

/* --- what is written */

static bool same_u(const weir_update *a, const weir_update *b, int64_t in)
{
    return a->r == b->r && memcmp(a->u, b->u, (size_t)(a->r * in) * sizeof *a->u) == 0;
}

static void count_rank(part *p)
{
    const weir_update *first = NULL;
    p->shared = true;
    p->r = 0;
    for (int i = 0; i < p->module.n; i++) {
        const weir_update *u = p->update[i];
        if (!u)
            continue;
        p->shared = p->shared && (!first || same_u(first, u, p->module.in));
        first = first ? first : u;
        p->r += u->r;
    }
    if (p->shared)
        p->r = first->r;
}

/* Puts an update into its module's part. */
static void sort_update(saver *s, const weir_update *u)
{
    weir_module module;
    weir_module_of(&module, s->m, u->layer, u->matrix);
    int64_t at = 0;
    while (at < s->n && strcmp(s->part[at].module.name, module.name) != 0)
        at++;
    part *p = &s->part[at];
    if (at == s->n) {
        p->module = module;
        s->n++;
    }
    for (int i = 0; i < module.n; i++)
        if (module.matrix[i] == u->matrix)
            p->update[i] = u;
}

static weir_status sort_updates(saver *s, weir_err *err)
{
    s->part = weir_calloc((size_t)weir_edit_n(s->e), sizeof *s->part);
    if (!s->part)
        return weir_nomem(err, "an edit's directory");
    for (int64_t i = 0; i < weir_edit_n(s->e); i++)
        sort_update(s, weir_edit_update(s->e, i));
    for (int64_t i = 0; i < s->n; i++)
        count_rank(&s->part[i]);
    return WEIR_OK;
}

/* --- adapter_config.json */

static void write_ranks(weir_jsonw *w, const saver *s, const char *key)
{
    weir_jsonw_key(w, key);
    weir_jsonw_object(w);
    for (int64_t i = 0; i < s->n; i++)
        if (s->part[i].r != s->part[0].r)
            weir_jsonw_key_int(w, s->part[i].module.name, s->part[i].r);
    weir_jsonw_end(w);
}

static void write_config(void *ctx, FILE *out)
{
    const saver *s = ctx;
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "peft_type", "LORA");
    weir_jsonw_key_cstr(&w, "task_type", "CAUSAL_LM");
    weir_jsonw_key_cstr(&w, "base_model_name_or_path", weir_model_info_of(s->m)->name);
    weir_jsonw_key_bool(&w, "inference_mode", true);
    weir_jsonw_key_int(&w, "r", s->part[0].r);
    weir_jsonw_key_int(&w, "lora_alpha", s->part[0].r);
    weir_jsonw_key_double(&w, "lora_dropout", 0);
    weir_jsonw_key_bool(&w, "use_rslora", false);
    weir_jsonw_key_bool(&w, "fan_in_fan_out", s->part[0].module.k_major);
    weir_jsonw_key_cstr(&w, "bias", "none");
    weir_jsonw_key(&w, "target_modules");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < s->n; i++)
        weir_jsonw_cstr(&w, s->part[i].module.name);
    weir_jsonw_end(&w);
    write_ranks(&w, s, "rank_pattern");
    write_ranks(&w, s, "alpha_pattern");
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* --- adapter_model.safetensors */

static void add_half(weir_st_head *h, const part *p, char letter, int64_t rows, int64_t columns)
{
    char name[sizeof p->module.name + 64];
    snprintf(name, sizeof name, WEIR_EDIT_PREFIX "%s.lora_%c.weight", p->module.name, letter);
    weir_st_head_add(h, name, 2, (const int64_t[]){rows, columns});
}

static void write_head(const saver *s, FILE *out)
{
    weir_st_head h;
    weir_st_head_begin(&h, out, "pt");
    for (int64_t i = 0; i < s->n; i++) {
        const part *p = &s->part[i];
        add_half(&h, p, 'A', p->r, p->module.in);
        add_half(&h, p, 'B', p->module.out, p->r);
    }
    weir_st_head_end(&h);
}

static void write_a(const part *p, FILE *out)
{
    for (int i = 0, done = 0; i < p->module.n && !done; i++)
        if (p->update[i]) {
            fwrite(p->update[i]->u, sizeof(float), (size_t)(p->update[i]->r * p->module.in), out);
            done = p->shared;
        }
}

/* B [out, r], with zeros where a matrix has no part in a row of A. */
static weir_status write_b(const saver *s, const part *p, FILE *out)
{
    int64_t first = 0;
    float *b = weir_calloc((size_t)p->module.out, (size_t)p->r * sizeof *b);
    if (!b)
        return WEIR_E_NOMEM;
    for (int i = 0; i < p->module.n; i++) {
        const weir_update *u = p->update[i];
        int64_t in, size;
        weir_matrix_shape(s->m, p->module.matrix[i], &in, &size);
        for (int64_t o = 0; u && o < size; o++)
            for (int64_t k = 0; k < u->r; k++)
                b[weir_module_row(s->m, u->matrix, o) * p->r + first + k] = u->v[k * size + o];
        first += u && !p->shared ? u->r : 0;
    }
    fwrite(b, sizeof *b, (size_t)(p->module.out * p->r), out);
    weir_free(b);
    return WEIR_OK;
}

typedef struct tensors {
    const saver *s;
    weir_status status;
} tensors;

static void write_tensors(void *ctx, FILE *out)
{
    tensors *t = ctx;
    write_head(t->s, out);
    for (int64_t i = 0; i < t->s->n && t->status == WEIR_OK; i++) {
        write_a(&t->s->part[i], out);
        t->status = write_b(t->s, &t->s->part[i], out);
    }
}

static void write_json(void *ctx, FILE *out)
{
    fputs(((const saver *)ctx)->json, out);
}

/* --- the directory */

weir_status weir_edit_may_save(const char *dir, weir_err *err)
{
    weir_arena arena = {0};
    weir_err why = {0};
    weir_edit_json json = {0};
    char *path = weir_path_join(dir, WEIR_EDIT_JSON);
    if (!path)
        return weir_nomem(err, "a path");
    weir_status s = weir_edit_json_read(&json, &arena, path, &why); /* what cannot be read is not ours */
    s = s == WEIR_E_NOMEM ? weir_nomem(err, "a path")
                          : weir_outdir_may(dir, &KIND, json.format && strcmp(json.format, WEIR_EDIT_FORMAT) == 0, err);
    weir_arena_free(&arena);
    weir_free(path);
    return s;
}

static weir_status put_files(weir_outdir *d, saver *s, weir_err *err)
{
    tensors t = {s, WEIR_OK};
    WEIR_TRY(weir_outdir_put(d, WEIR_EDIT_CONFIG, write_config, s, err));
    WEIR_TRY(weir_outdir_put(d, WEIR_EDIT_TENSORS, write_tensors, &t, err));
    if (t.status != WEIR_OK)
        return weir_nomem(err, "an edit's tensors");
    return weir_outdir_put(d, WEIR_EDIT_JSON, write_json, s, err);
}

/* edit.json is read again by whoever opens the directory. */
static weir_status check_json(const char *json, weir_err *err)
{
    weir_json j;
    weir_json_init(&j, json, strlen(json), WEIR_EDIT_JSON, err);
    if (weir_json_peek(&j) != WEIR_JSON_OBJECT)
        weir_json_fail(&j, "it is no object");
    weir_json_skip(&j);
    weir_json_end(&j);
    return weir_json_done(&j);
}

weir_status weir_edit_save(const weir_edit *e, const char *dir, const char *json, weir_err *err)
{
    saver s = {.e = e, .m = weir_edit_model(e), .json = json};
    weir_outdir *d = NULL;
    WEIR_TRY(weir_edit_may_save(dir, err));
    WEIR_TRY(check_json(json, err));
    weir_status st = sort_updates(&s, err);
    if (st == WEIR_OK)
        st = weir_outdir_open(&d, dir, &KIND, err);
    if (st == WEIR_OK)
        st = put_files(d, &s, err);
    if (st == WEIR_OK)
        st = weir_outdir_commit(d, err);
    else
        weir_outdir_abort(d);
    weir_free(s.part);
    return st;
}
