/* Records of facts out of JSON, in two forms that are told apart by their keys. */
#include <string.h>

#include <weir/facts.h>
#include <weir/json.h>
#include <weir/text.h>

#include "../base/mem.h"

struct weir_fact_list {
    weir_fact *fact; /* [n] */
    int64_t n;
    weir_arena arena;
};

enum { MOST_PROMPTS = 256 /* of a kind, in a record */ };

/* A list of prompts while it is read. */
typedef struct prompts {
    const char *v[MOST_PROMPTS];
    int64_t n;
} prompts;

/* A record while it is read; strings live in the arena. */
typedef struct record {
    weir_arena *arena;
    weir_fact f;
    prompts paraphrase, neighbour, generation;
    bool flat;
} record;

static const char *keep(record *r, weir_json *j, weir_str s)
{
    const char *z = weir_arena_strndup(r->arena, s.p, s.n);
    if (memchr(s.p ? s.p : "", 0, s.n))
        weir_json_fail(j, "a text with a NUL byte");
    if (!z)
        weir_json_fail(j, "out of memory");
    return z;
}

static const char *string(record *r, weir_json *j)
{
    return keep(r, j, weir_json_string(j));
}

static void list(record *r, weir_json *j, prompts *p)
{
    if (weir_json_peek(j) == WEIR_JSON_STRING) {
        p->v[0] = string(r, j);
        p->n = 1;
        return;
    }
    weir_json_array(j);
    while (weir_json_item(j)) {
        if (p->n == MOST_PROMPTS) {
            weir_json_fail(j, "more than %d prompts of one kind", MOST_PROMPTS);
            return;
        }
        p->v[p->n++] = string(r, j);
    }
}

/* {"str": "Caucasus", "id": ...} */
static const char *answer(record *r, weir_json *j)
{
    const char *z = NULL;
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        if (weir_str_eq(key, "str"))
            z = string(r, j);
    return z;
}

static void rewrite(record *r, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "prompt"))
            r->f.prompt = string(r, j);
        else if (weir_str_eq(key, "subject"))
            r->f.subject = string(r, j);
        else if (weir_str_eq(key, "target_true"))
            r->f.truth = answer(r, j);
        else if (weir_str_eq(key, "target_new"))
            r->f.target = answer(r, j);
    }
}

/* A key of the flat form, or one that says nothing here. */
static void flat_key(record *r, weir_json *j, weir_str key)
{
    const struct {
        const char *name;
        const char **at;
    } texts[] = {{"prompt", &r->f.prompt},
                 {"subject", &r->f.subject},
                 {"target_new", &r->f.target},
                 {"ground_truth", &r->f.truth},
                 {"locality_ground_truth", &r->f.neighbour_truth}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (weir_str_eq(key, texts[i].name)) {
            *texts[i].at = string(r, j);
            r->flat = true;
            return;
        }
    if (weir_str_eq(key, "rephrase_prompt"))
        list(r, j, &r->paraphrase);
    else if (weir_str_eq(key, "locality_prompt"))
        list(r, j, &r->neighbour);
}

static void read_keys(record *r, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "case_id"))
            r->f.id = weir_json_int(j);
        else if (weir_str_eq(key, "requested_rewrite"))
            rewrite(r, j);
        else if (weir_str_eq(key, "paraphrase_prompts"))
            list(r, j, &r->paraphrase);
        else if (weir_str_eq(key, "neighborhood_prompts"))
            list(r, j, &r->neighbour);
        else if (weir_str_eq(key, "generation_prompts"))
            list(r, j, &r->generation);
        else
            flat_key(r, j, key);
    }
}

/* The flat form spells the subject out. */
static void cut_subject(record *r, weir_json *j)
{
    const char *prompt = r->f.prompt, *subject = r->f.subject, *at = strstr(prompt, subject);
    if (strstr(prompt, "{}"))
        return;
    if (!*subject || !at || strstr(at + 1, subject)) {
        weir_json_fail(j, "the subject \"%.100s\" does not stand once in the prompt \"%.200s\"", subject, prompt);
        return;
    }
    const size_t n = (size_t)(at - prompt), all = strlen(prompt) - strlen(subject) + 2;
    char *z = weir_arena_alloc(r->arena, all + 1, 1);
    if (!z) {
        weir_json_fail(j, "out of memory");
        return;
    }
    memcpy(z, prompt, n);
    memcpy(z + n, "{}", 2);
    memcpy(z + n + 2, at + strlen(subject), all - n - 2);
    r->f.prompt = z;
}

static const char *const *settle(record *r, weir_json *j, const prompts *p, int64_t *n)
{
    const char **v = weir_arena_alloc(r->arena, (size_t)p->n + 1, sizeof *v);
    if (!v)
        weir_json_fail(j, "out of memory");
    else
        memcpy(v, p->v, (size_t)p->n * sizeof *v);
    *n = v ? p->n : 0;
    return v;
}

static void read_record(record *r, weir_json *j)
{
    read_keys(r, j);
    if (j->status != WEIR_OK)
        return;
    const struct {
        const char *name, *v;
    } needed[] = {{"prompt", r->f.prompt},
                  {"subject", r->f.subject},
                  {r->flat ? "ground_truth" : "target_true", r->f.truth},
                  {"target_new", r->f.target}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].v) {
            weir_json_fail(j, "the record has no %s", needed[i].name);
            return;
        }
    if (r->flat)
        cut_subject(r, j);
    if (!r->f.neighbour_truth)
        r->f.neighbour_truth = r->f.truth;
    r->f.paraphrase = settle(r, j, &r->paraphrase, &r->f.n_paraphrase);
    r->f.neighbour = settle(r, j, &r->neighbour, &r->f.n_neighbour);
    r->f.generation = settle(r, j, &r->generation, &r->f.n_generation);
}

static weir_status append(weir_fact_list *f, weir_json *j)
{
    weir_fact *grown = weir_grow(f->fact, (size_t)f->n, sizeof *grown);
    if (!grown) {
        weir_json_fail(j, "out of memory");
        return WEIR_E_NOMEM;
    }
    f->fact = grown;
    record r = {.arena = &f->arena, .f = {.id = f->n}};
    read_record(&r, j);
    if (j->status == WEIR_OK)
        f->fact[f->n++] = r.f;
    return j->status;
}

/* A file: an array, or records one after the other. */
static weir_status read_document(weir_fact_list *f, const weir_doc *d, const char *path, weir_err *err)
{
    weir_json j;
    weir_json_init(&j, d->text.p, d->text.n, path, err);
    if (weir_json_peek(&j) == WEIR_JSON_ARRAY) {
        weir_json_array(&j);
        while (weir_json_item(&j) && append(f, &j) == WEIR_OK)
            ;
    } else {
        append(f, &j);
    }
    weir_json_end(&j);
    const weir_status s = weir_json_done(&j);
    if (s != WEIR_OK && err && d->line > 1) /* of JSONL the line says more than a byte of it */
        snprintf(err->file, sizeof err->file, "%.400s:%lld", path, (long long)d->line);
    return s;
}

/* Does the file hold one JSON value? It begins with "[". */
static weir_status is_array(const char *path, bool *array, weir_err *err)
{
    weir_docs *docs;
    weir_docs_options o;
    weir_doc d;
    bool more;
    weir_docs_options_init(&o);
    o.paths = &path, o.n_paths = 1, o.format = WEIR_DOCS_TEXT;
    *array = false;
    WEIR_TRY(weir_docs_open(&docs, &o, err));
    const weir_status s = weir_docs_next(docs, &d, &more, err);
    if (s == WEIR_OK && more) {
        size_t i = 0;
        while (i < d.text.n && strchr(" \t\r\n", d.text.p[i]))
            i++;
        *array = i < d.text.n && d.text.p[i] == '[';
    }
    weir_docs_free(docs);
    return s;
}

static weir_status read_all(weir_fact_list *f, const char *path, weir_err *err)
{
    weir_docs *docs;
    weir_docs_options o;
    weir_doc d;
    bool more = true, array;
    WEIR_TRY(is_array(path, &array, err));
    weir_docs_options_init(&o);
    o.paths = &path, o.n_paths = 1, o.format = WEIR_DOCS_TEXT, o.split = array ? WEIR_DOCS_FILE : WEIR_DOCS_LINE;
    WEIR_TRY(weir_docs_open(&docs, &o, err));
    weir_status s = WEIR_OK;
    while (s == WEIR_OK && (s = weir_docs_next(docs, &d, &more, err)) == WEIR_OK && more)
        s = read_document(f, &d, path, err);
    weir_docs_free(docs);
    if (s == WEIR_OK && f->n == 0)
        s = weir_fail(err, WEIR_E_FORMAT, "holds no record");
    return s;
}

weir_status weir_fact_list_read(weir_fact_list **out, const char *path, weir_err *err)
{
    *out = NULL;
    weir_fact_list *f = weir_calloc(1, sizeof *f);
    if (!f)
        return weir_nomem(err, "facts");
    const weir_status s = read_all(f, path, err);
    if (s != WEIR_OK) {
        weir_fact_list_free(f);
        weir_err_where(err, path, NULL, -1);
        return s;
    }
    *out = f;
    return WEIR_OK;
}

void weir_fact_list_free(weir_fact_list *f)
{
    if (!f)
        return;
    weir_free(f->fact);
    weir_arena_free(&f->arena);
    weir_free(f);
}

int64_t weir_fact_list_n(const weir_fact_list *f)
{
    return f->n;
}

const weir_fact *weir_fact_list_at(const weir_fact_list *f, int64_t i)
{
    return &f->fact[i];
}
