/* The report of rome verify as a file of arrays, format "weir-verify" version 1: README.md has the schema. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/say.h"
#include "sheet.h"

#define FORMAT "weir-verify"
enum { VERSION = 1 };

/* --- attributes */

static const char *last_part(const char *dir, size_t *n)
{
    *n = strlen(dir);
    while (*n > 1 && dir[*n - 1] == '/')
        --*n;
    size_t at = *n;
    while (at && dir[at - 1] != '/')
        at--;
    *n -= at;
    return dir + at;
}

static void write_thresholds(weir_jsonw *w, const weir_verified *v)
{
    weir_jsonw_object(w);
    for (int i = 0; i < WEIR_VERIFY_CHECKS; i++) {
        weir_jsonw_key(w, v->check[i].name);
        weir_jsonw_object(w);
        weir_jsonw_key_double(w, v->check[i].most ? "at_most" : "at_least", v->check[i].bound);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

/* To be freed; NULL: out of memory. */
static char *thresholds(const weir_verified *v)
{
    char *json = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&json, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    write_thresholds(&w, v);
    return fclose(f) == 0 ? json : (free(json), NULL);
}

static weir_status put_names(const weir_sheet *s, const char *dir, const char *bounds, const char *edits, weir_err *err)
{
    const weir_verified *v = s->v;
    const weir_edit_about *about = weir_edit_about_of(v->edit);
    const struct {
        const char *name, *text;
    } of[] = {{"weir_version", weir_version()},
              {"model", v->e->info->name},
              {"fingerprint", v->e->fingerprint},
              {"tokenizer", weir_tokenizer_fingerprint(v->e->tok)},
              {"edit", dir},
              {"edit_sha256", about->sha256},
              {"edit_method", about->method},
              {"edit_fingerprint", about->fingerprint},
              {"edits", edits},
              {"thresholds", bounds}};
    for (size_t i = 0; i < WEIR_SHEET_COUNT(of); i++)
        WEIR_TRY(weir_arrays_put_text(s->w, "", of[i].name, of[i].text ? of[i].text : "", err));
    return WEIR_OK;
}

static weir_status put_about(const weir_sheet *s, weir_err *err)
{
    const weir_verified *v = s->v;
    size_t n;
    const char *name = last_part(v->dir, &n);
    char *dir = strndup(name, n), *bounds = thresholds(v), *edits = weir_edits_json(&v->e->edits);
    weir_status st = dir && bounds && edits ? put_names(s, dir, bounds, edits, err) : weir_sheet_no_memory(err);
    free(dir);
    free(bounds);
    free(edits);
    bool ok = true;
    for (int i = 0; i < WEIR_VERIFY_CHECKS; i++)
        ok = ok && weir_verify_kept(&v->check[i]);
    const struct {
        const char *name;
        int64_t v;
    } of[] = {{"bos", v->e->o.bos}, {"prefixes", v->made->n_prefixes}, {"ok", ok}};
    for (size_t i = 0; i < WEIR_SHEET_COUNT(of) && st == WEIR_OK; i++)
        st = weir_arrays_put_int(s->w, "", of[i].name, of[i].v, err);
    return st;
}

/* --- checks */

static weir_str check_name(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(s->v->check[i].name);
}

static double check_value(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->check[i].value;
}

static double check_bound(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->check[i].bound;
}

static int64_t check_upper(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->check[i].most;
}

static int64_t check_kept(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return weir_verify_kept(&s->v->check[i]);
}

static weir_status put_checks(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {{.name = "name", .text = check_name},
                                           {.name = "value", .sides = 1, .real = check_value},
                                           {.name = "bound", .sides = 1, .real = check_bound},
                                           {.name = "upper", .sides = 1, .number = check_upper, .type = WEIR_ARRAY_U8},
                                           {.name = "kept", .sides = 1, .number = check_kept, .type = WEIR_ARRAY_U8}};
    return weir_sheet_columns(s, "checks", of, WEIR_SHEET_COUNT(of), WEIR_VERIFY_CHECKS, err);
}

/* --- the edit: requests, what the search came to, matrices */

static weir_str request_prompt(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(s->v->made->request[i].prompt);
}

static weir_str request_subject(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(s->v->made->request[i].subject);
}

static weir_str request_target(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(s->v->made->request[i].target);
}

/* Numbers of a request, by name. */
#define NUMBER(field)                                                                                                  \
    static double request_##field(const weir_sheet *s, int64_t i, int side)                                            \
    {                                                                                                                  \
        (void)side;                                                                                                    \
        return s->v->made->request[i].numbers.field;                                                                   \
    }
NUMBER(v0)
NUMBER(delta)
NUMBER(k_u)
NUMBER(k_cos)
NUMBER(lambda)
NUMBER(share)

static int64_t request_clamped(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->made->request[i].numbers.clamped;
}

static int64_t request_converged(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->made->request[i].numbers.converged;
}

static int64_t request_passes(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->v->made->request[i].steps;
}

static weir_status put_requests(const weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {
        {.name = "prompt", .text = request_prompt},
        {.name = "subject", .text = request_subject},
        {.name = "target", .text = request_target},
        {.name = "v0_norm", .sides = 1, .real = request_v0},
        {.name = "delta_norm", .sides = 1, .real = request_delta},
        {.name = "k_u", .sides = 1, .real = request_k_u},
        {.name = "k_cos", .sides = 1, .real = request_k_cos},
        {.name = "lambda_norm", .sides = 1, .real = request_lambda},
        {.name = "share", .sides = 1, .real = request_share},
        {.name = "clamped", .sides = 1, .number = request_clamped, .type = WEIR_ARRAY_U8},
        {.name = "converged", .sides = 1, .number = request_converged, .type = WEIR_ARRAY_U8},
        {.name = "passes", .sides = 1, .number = request_passes, .type = WEIR_ARRAY_I64}};
    return weir_sheet_columns(s, "requests", of, WEIR_SHEET_COUNT(of), s->v->made->n, err);
}

/* All passes, request by request. */
static weir_status put_search(const weir_sheet *s, weir_err *err)
{
    static const struct {
        const char *name;
        size_t at;
    } of[] = {{"search/loss", offsetof(weir_rome_step, loss)}, {"search/nll", offsetof(weir_rome_step, nll)},
              {"search/kl", offsetof(weir_rome_step, kl)},     {"search/decay", offsetof(weir_rome_step, decay)},
              {"search/p", offsetof(weir_rome_step, p)},       {"search/delta", offsetof(weir_rome_step, delta)}};
    const weir_made *m = s->v->made;
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i++)
        n += m->request[i].steps;
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    weir_status st = x ? WEIR_OK : weir_sheet_no_memory(err);
    for (size_t k = 0; k < WEIR_SHEET_COUNT(of) && st == WEIR_OK; k++) {
        double *at = x;
        for (int64_t i = 0; i < m->n; i++)
            for (int64_t j = 0; j < m->request[i].steps; j++)
                memcpy(at++, (const char *)&m->request[i].step[j] + of[k].at, sizeof *at);
        st = weir_arrays_put(s->w, of[k].name, WEIR_ARRAY_F64, 1, &n, x, err);
    }
    free(x);
    return st;
}

static weir_str module_name(const weir_sheet *s, int64_t i)
{
    return weir_sheet_string(s->module[i].name);
}

static int64_t module_rank(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->module[i].r;
}

static double module_delta(const weir_sheet *s, int64_t i, int side)
{
    (void)side;
    return s->module[i].norm;
}

static weir_status put_edit(weir_sheet *s, weir_err *err)
{
    static const weir_sheet_column of[] = {{.name = "name", .text = module_name},
                                           {.name = "rank", .sides = 1, .number = module_rank, .type = WEIR_ARRAY_I64},
                                           {.name = "delta_norm", .sides = 1, .real = module_delta}};
    weir_edit_look *look;
    const weir_made *m = s->v->made;
    WEIR_TRY(weir_arrays_put(s->w, "edit/layer", WEIR_ARRAY_I64, 1, &m->n_layers, m->layer, err));
    WEIR_TRY(weir_edit_look_at(&look, s->v->dir, err));
    s->modules = weir_edit_look_modules(look, &s->module);
    const weir_status st = weir_sheet_columns(s, "modules", of, WEIR_SHEET_COUNT(of), s->modules, err);
    weir_edit_look_free(look);
    s->module = NULL;
    return st;
}

/* --- all */

static weir_str token_bytes(const weir_sheet *s, int64_t id)
{
    return weir_tokenizer_bytes(s->v->e->tok, (int32_t)id);
}

static weir_status put_all(weir_sheet *s, weir_err *err)
{
    WEIR_TRY(put_about(s, err));
    WEIR_TRY(put_checks(s, err));
    WEIR_TRY(put_edit(s, err));
    WEIR_TRY(put_requests(s, err));
    WEIR_TRY(put_search(s, err));
    WEIR_TRY(weir_sheet_questions(s, err));
    WEIR_TRY(weir_sheet_perplexity(s, err));
    WEIR_TRY(weir_sheet_stream(s, err));
    return weir_sheet_texts(s, "vocab", weir_tokenizer_size(s->v->e->tok), token_bytes, err);
}

static weir_status write_file(weir_sheet *s, const char *path, weir_err *err)
{
    WEIR_TRY(weir_arrays_create(&s->w, path, FORMAT, VERSION, s->v->e->o.threads, err));
    const weir_status st = put_all(s, err);
    if (st == WEIR_OK)
        return weir_arrays_commit(s->w, err);
    weir_arrays_abort(s->w);
    return st;
}

int weir_verify_write(const weir_verified *v, const char *path)
{
    weir_err err = {0};
    weir_moved moved;
    weir_sheet s = {.v = v, .moved = &moved};
    int code = weir_moved_take(&moved, v->e, v->edit, v->asked);
    if (code == WEIR_EXIT_OK && write_file(&s, path, &err) != WEIR_OK)
        code = weir_cli_fail(v->e->cli, &err);
    weir_moved_free(&moved);
    return code;
}

int weir_verify_place(const weir_cli *cli, const char *path, const char *const *read, int n)
{
    if (!weir_ends_with(path, ".h5") && !weir_ends_with(path, ".hdf5"))
        return weir_cli_usage(cli, "--out %s: the report is an HDF5 file: FILE.h5; --json prints JSON", path);
    int code = weir_output_apart(cli, path, read, n);
    if (code == WEIR_EXIT_OK)
        code = weir_output_place(cli, path);
    if (code == WEIR_EXIT_OK && access(path, F_OK) == 0 && !weir_arrays_is(path, FORMAT))
        code = weir_cli_error(cli, "%s exists and is no report of rome verify: choose another name", path);
    return code;
}
