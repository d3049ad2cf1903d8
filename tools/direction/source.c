#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw.h"
#include "cli/from.h"
#include "cli/say.h"
#include "direction.h"

enum { MOST_LISTED = 8 /* names in an error */, SEVERAL = -2 /* hooks fit */ };

static const char *attr(const weir_direction_dump *u, const char *name)
{
    return weir_from_attr(u->r, name, "");
}

/* --- dumps */

static int open_dump(weir_direction *d, int k)
{
    weir_err err = {0};
    weir_direction_dump *u = &d->dump[k];
    *u = (weir_direction_dump){.path = d->cli->operand[k], .only = k == 0};
    if (weir_dump_open(&u->r, u->path, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    weir_dump_set_threads(u->r, (int)d->a->threads);
    weir_from_part part;
    if (weir_from_part_of(u->r, &part, &err) != WEIR_OK)
        return weir_cli_fail_at(d->cli, u->path, &err);
    u->first_doc = part.first_doc;
    weir_from_note_incomplete(d->cli, u->r, u->path);
    return WEIR_EXIT_OK;
}

static int check_models(const weir_direction *d)
{
    const weir_direction_dump *a = &d->dump[0], *b = &d->dump[1];
    if (d->n_dumps < 2 || strcmp(attr(a, "fingerprint"), attr(b, "fingerprint")) == 0)
        return WEIR_EXIT_OK;
    return weir_cli_error(d->cli, "%s is of %s and %s of %s, another model: their rows cannot be compared", a->path,
                          attr(a, "model"), b->path, attr(b, "model"));
}

/* --- the hook */

/* Rows of a fixed width, all units of them. */
static bool is_whole(const weir_dump_hook *h)
{
    return !h->units && !strchr(h->letters, 'S');
}

/* "A, B, ... (12)" of the whole hooks, to be freed; NULL: out of memory. */
static char *list_hooks(const weir_direction_dump *u)
{
    char *text = NULL;
    size_t size = 0;
    int n = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (int i = 0; i < weir_dump_n_hooks(u->r); i++)
        if (is_whole(weir_dump_hook_at(u->r, i)) && n++ < MOST_LISTED)
            fprintf(f, "%s%s", n > 1 ? ", " : "", weir_dump_hook_at(u->r, i)->name);
    if (n > MOST_LISTED)
        fprintf(f, ", ... (%d)", n);
    fclose(f);
    return text;
}

/* The only whole hook; -1: there are none, or several. */
static int only_hook(const weir_direction_dump *u)
{
    int found = -1;
    for (int i = 0; i < weir_dump_n_hooks(u->r); i++)
        if (is_whole(weir_dump_hook_at(u->r, i))) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

static int no_hook(const weir_direction *d, const weir_direction_dump *u, const char *name)
{
    char *list = list_hooks(u);
    int code;
    if (!list)
        code = weir_cli_error(d->cli, "out of memory");
    else if (!*list)
        code = weir_cli_error(d->cli, "%s holds no hook of whole rows: weir trace --dump records some", u->path);
    else if (name && u->hook != SEVERAL)
        code = weir_cli_error(d->cli, "%s lacks %s: it holds %s", u->path, name, list);
    else
        code = weir_cli_usage(d->cli, "%s holds several hooks, choose one with --hook: %s", u->path, list);
    free(list);
    return code;
}

/* Is it what --site calls the point: resid_post for blocks.2.hook_resid_post? Hyphen and underscore are the same. */
static bool is_site(const char *point, const char *site)
{
    const char *dot = strrchr(point, '.'), *own = dot ? dot + 1 : point;
    own += strncmp(own, "hook_", 5) == 0 && strncmp(site, "hook_", 5) != 0 ? 5 : 0;
    for (; *own && *own == (*site == '-' ? '_' : *site); own++)
        site++;
    return *own == 0 && *site == 0;
}

/* The hook of that name, or the only whole one of that site; -1: there is none. */
static int named_hook(const weir_direction_dump *u, const char *name)
{
    int found = weir_dump_find(u->r, name);
    if (found >= 0)
        return found;
    for (int i = 0; i < weir_dump_n_hooks(u->r); i++)
        if (is_whole(weir_dump_hook_at(u->r, i)) && is_site(weir_dump_hook_at(u->r, i)->name, name)) {
            if (found >= 0)
                return SEVERAL;
            found = i;
        }
    return found;
}

static int choose_hook(weir_direction *d, weir_direction_dump *u)
{
    const char *name = d->hook ? d->hook->name : d->a->hook;
    u->hook = name ? named_hook(u, name) : only_hook(u);
    if (u->hook < 0)
        return no_hook(d, u, name);
    const weir_dump_hook *h = weir_dump_hook_at(u->r, u->hook);
    if (!is_whole(h))
        return weir_cli_error(d->cli, "%s: the rows of %s %s", u->path, h->name,
                              h->units ? "hold only some units: record it whole" : "have no fixed width");
    d->hook = d->hook ? d->hook : h;
    if (h->width != d->hook->width)
        return weir_cli_error(d->cli, "%s: %s is %lld wide, and %lld in %s", u->path, h->name, (long long)h->width,
                              (long long)d->hook->width, d->dump[0].path);
    d->n = h->width;
    return WEIR_EXIT_OK;
}

/* --- labels */

/* --label FIELD[=VALUE] */
typedef struct label {
    char *field;       /* owned */
    const char *value; /* NULL: none */
    int index;         /* of the field in the dump */
} label;

static bool equals(const weir_field *f, const char *value)
{
    double x;
    if (f->type == WEIR_FIELD_BOOL)
        return strcmp(value, f->i ? "true" : "false") == 0;
    if (f->type == WEIR_FIELD_INT)
        return weir_parse_real(value, &x) && x == (double)f->i;
    if (f->type == WEIR_FIELD_FLOAT)
        return weir_parse_real(value, &x) && x == f->f;
    return weir_str_eq(f->str, value);
}

static int class_of(const label *l, const weir_field *f)
{
    if (l->value)
        return equals(f, l->value);
    return f->type == WEIR_FIELD_FLOAT ? f->f > 0 : f->i > 0;
}

static weir_status read_classes(weir_direction *d, weir_direction_dump *u, const label *l, weir_err *err)
{
    const int64_t docs = weir_dump_n_docs(u->r);
    u->class = malloc((size_t)docs + 1);
    if (!u->class)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    for (int64_t i = 0; i < docs; i++) {
        weir_field f;
        bool there;
        WEIR_TRY(weir_dump_read_field(u->r, l->index, i, &f, &there, err));
        there = there && (f.type != WEIR_FIELD_STRING || f.str.n); /* a dump keeps no other sign of a missing string */
        u->class[i] = (int8_t)(there ? class_of(l, &f) : -1);
        d->unlabelled += !there;
    }
    return WEIR_OK;
}

static int no_field(const weir_direction *d, const weir_direction_dump *u, const char *field)
{
    char *list = NULL;
    size_t size = 0;
    const int n = weir_dump_n_fields(u->r);
    FILE *f = open_memstream(&list, &size);
    if (!f)
        return weir_cli_error(d->cli, "out of memory");
    for (int i = 0; i < n && i < MOST_LISTED; i++)
        fprintf(f, "%s%s", i ? ", " : "", weir_dump_field_at(u->r, i)->name);
    fputs(n > MOST_LISTED ? ", ..." : n ? "" : "none (JSONL documents have them)", f);
    fclose(f);
    const int code =
        weir_cli_error(d->cli, "%s: its documents have no field \"%s\"; their fields: %s", u->path, field, list);
    free(list);
    return code;
}

static int read_label(weir_direction *d, weir_direction_dump *u, label *l)
{
    weir_err err = {0};
    l->index = weir_dump_find_field(u->r, l->field);
    if (l->index < 0)
        return no_field(d, u, l->field);
    const weir_field_type type = weir_dump_field_at(u->r, l->index)->type;
    if (!l->value && (type == WEIR_FIELD_STRING || type == WEIR_FIELD_OTHER))
        return weir_cli_usage(d->cli, "--label %s: the field holds text: --label %s=VALUE says which value is positive",
                              l->field, l->field);
    if (read_classes(d, u, l, &err) != WEIR_OK)
        return weir_cli_fail_at(d->cli, u->path, &err);
    return WEIR_EXIT_OK;
}

static int label_documents(weir_direction *d)
{
    if (!d->a->label)
        return WEIR_EXIT_OK;
    const char *equal = strchr(d->a->label, '=');
    const size_t n = equal ? (size_t)(equal - d->a->label) : strlen(d->a->label);
    label l = {.field = strndup(d->a->label, n), .value = equal ? equal + 1 : NULL};
    const int code = l.field ? read_label(d, &d->dump[0], &l) : weir_cli_error(d->cli, "out of memory");
    free(l.field);
    return code;
}

int weir_direction_class(const weir_direction_dump *u, int64_t doc)
{
    return u->class ? u->class[doc] : u->only;
}

/* A document's draw depends on its number and the seed alone. Documents of the same number in two dumps, which may be a
 * pair, are on the same side. */
int weir_direction_side(const weir_direction *d, const weir_direction_dump *u, int64_t doc)
{
    uint64_t state = (uint64_t)d->a->seed;
    state = weir_draw(&state) + (uint64_t)(u->first_doc + doc);
    const double share = (double)(weir_draw(&state) >> 11) * 0x1p-53;
    return d->classes && share < d->a->held_out ? WEIR_HELD_OUT : WEIR_TRAINING;
}

/* --- counts */

static weir_status count_dump(weir_direction *d, const weir_direction_dump *u, weir_err *err)
{
    for (int64_t i = 0; i < weir_dump_n_docs(u->r); i++) {
        weir_dump_doc_rows rows;
        const int class = weir_direction_class(u, i), side = weir_direction_side(d, u, i);
        if (class < 0)
            continue;
        WEIR_TRY(weir_dump_read_doc(u->r, i, &rows, err));
        d->empty += rows.n == 0;
        d->docs[class][side] += rows.n > 0;
        d->rows[class][side] += d->a->rows == WEIR_DIRECTION_ALL ? rows.n : rows.n > 0;
    }
    return WEIR_OK;
}

static int check_counts(const weir_direction *d)
{
    static const char *const name[] = {"negative", "positive"};
    for (int c = d->classes ? WEIR_NEGATIVE : WEIR_POSITIVE; c < WEIR_CLASSES; c++) {
        const int64_t *docs = d->docs[c], all = docs[WEIR_TRAINING] + docs[WEIR_HELD_OUT];
        if (all == 0 && d->a->label)
            return weir_cli_error(d->cli, "the %s class is empty: by --label %s no document that has rows is in it",
                                  name[c], d->a->label);
        if (all == 0)
            return weir_cli_error(d->cli, "%s holds no row", d->dump[d->classes && c == WEIR_NEGATIVE].path);
        if (docs[WEIR_TRAINING] == 0 || (docs[WEIR_HELD_OUT] == 0 && d->classes && d->a->held_out > 0))
            return weir_cli_error(
                d->cli, "of %lld %s documents %s was held out: more documents, or another --held-out or --seed",
                (long long)all, name[c], docs[WEIR_TRAINING] ? "none" : "each");
    }
    return WEIR_EXIT_OK;
}

static int count(weir_direction *d)
{
    weir_err err = {0};
    for (int k = 0; k < d->n_dumps; k++)
        if (count_dump(d, &d->dump[k], &err) != WEIR_OK)
            return weir_cli_fail_at(d->cli, d->dump[k].path, &err);
    const int code = check_counts(d);
    if (code == WEIR_EXIT_OK && d->unlabelled)
        weir_cli_note(d->cli, "%lld documents lack the field and are left out", (long long)d->unlabelled);
    if (code == WEIR_EXIT_OK && d->empty)
        weir_cli_note(d->cli, "%lld documents have no row", (long long)d->empty);
    return code;
}

/* --- pairs */

/* The first document whose rows cannot be paired; -1: there is none. */
static weir_status find_unpaired(const weir_direction *d, int64_t *doc, weir_err *err)
{
    const int64_t a = weir_dump_n_docs(d->dump[0].r), b = weir_dump_n_docs(d->dump[1].r);
    *doc = 0;
    if (d->dump[0].first_doc != d->dump[1].first_doc)
        return WEIR_OK;
    for (int64_t i = 0; i < a && i < b; i++) {
        weir_dump_doc_rows rows[2];
        for (int k = 0; k < 2; k++)
            WEIR_TRY(weir_dump_read_doc(d->dump[k].r, i, &rows[k], err));
        *doc = i;
        if (d->a->rows == WEIR_DIRECTION_ALL ? rows[0].n != rows[1].n : (rows[0].n > 0) != (rows[1].n > 0))
            return WEIR_OK;
    }
    *doc = a == b ? -1 : a < b ? a : b;
    return WEIR_OK;
}

static int decide_pairs(weir_direction *d)
{
    weir_err err = {0};
    int64_t doc = -1;
    if (d->a->method != WEIR_DIRECTION_PCA || d->a->pairs == WEIR_DIRECTION_NO || d->n_dumps < 2)
        return WEIR_EXIT_OK;
    if (find_unpaired(d, &doc, &err) != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    if (doc >= 0 && d->a->pairs == WEIR_DIRECTION_YES)
        return weir_cli_error(d->cli, "--pairs yes: document %lld of %s has no partner with as many rows in %s",
                              (long long)doc, d->dump[0].path, d->dump[1].path);
    d->pairs = doc < 0;
    return WEIR_EXIT_OK;
}

/* --- all of it */

int weir_direction_open(weir_direction *d)
{
    int code = WEIR_EXIT_OK;
    d->n_dumps = d->cli->n_operands;
    d->classes = d->n_dumps == 2 || d->a->label;
    for (int k = 0; k < d->n_dumps && code == WEIR_EXIT_OK; k++)
        code = open_dump(d, k);
    if (code == WEIR_EXIT_OK)
        code = check_models(d);
    for (int k = 0; k < d->n_dumps && code == WEIR_EXIT_OK; k++)
        code = choose_hook(d, &d->dump[k]);
    int (*const steps[])(weir_direction *) = {label_documents, count, decide_pairs};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == WEIR_EXIT_OK; i++)
        code = steps[i](d);
    if (code != WEIR_EXIT_OK)
        return code;
    d->model = attr(&d->dump[0], "model");
    d->fingerprint = attr(&d->dump[0], "fingerprint");
    return WEIR_EXIT_OK;
}

void weir_direction_close(weir_direction *d)
{
    for (int k = 0; k < d->n_dumps; k++) {
        free(d->dump[k].class);
        weir_dump_close(d->dump[k].r);
    }
    free(d->mean);
    free(d->vector);
    free(d->variance);
    free(d->command_line);
}
