#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

/* A copy, or the reader fails. */
static char *keep(weir_json *j)
{
    const weir_str s = weir_json_string(j);
    char *z = strndup(s.p ? s.p : "", s.n);
    if (!z)
        weir_json_fail(j, "out of memory");
    return z;
}

/* Room for one more of size bytes behind n. */
static void *one_more(weir_json *j, void *list, int64_t n, size_t size)
{
    void *more = realloc(list, ((size_t)n + 1) * size);
    if (!more)
        weir_json_fail(j, "out of memory");
    return more;
}

/* Item i of the requests, made when it is first seen: requests and reports are two lists. */
static weir_made_request *item(weir_made *m, weir_json *j, int64_t i)
{
    if (i == m->n) {
        weir_made_request *more = one_more(j, m->request, m->n, sizeof *more);
        if (!more)
            return NULL;
        m->request = more;
        more[m->n++] = (weir_made_request){.numbers = weir_rome_numbers_unknown()};
    }
    return &m->request[i];
}

static void read_request(weir_json *j, weir_made_request *r)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        char **at = weir_str_eq(key, "prompt")    ? &r->prompt
                    : weir_str_eq(key, "subject") ? &r->subject
                    : weir_str_eq(key, "target")  ? &r->target
                                                  : NULL;
        if (at && !*at)
            *at = keep(j);
    }
}

static void read_step(weir_json *j, weir_rome_step *s)
{
    const struct {
        const char *name;
        double *at;
    } of[] = {{"loss", &s->loss},   {"nll", &s->nll}, {"kl", &s->kl},
              {"decay", &s->decay}, {"p", &s->p},     {"delta", &s->delta}};
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            if (weir_str_eq(key, of[i].name)) {
                *of[i].at = weir_rome_number(j);
                break;
            }
}

static void read_trace(weir_json *j, weir_made_request *r)
{
    weir_json_array(j);
    while (weir_json_item(j)) {
        weir_rome_step *more = one_more(j, r->step, r->steps, sizeof *more);
        if (!more)
            return;
        r->step = more;
        more[r->steps] = (weir_rome_step){NAN, NAN, NAN, NAN, NAN, NAN};
        read_step(j, &more[r->steps++]);
    }
}

static void read_report(weir_json *j, weir_made_request *r)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        if (weir_str_eq(key, "trace"))
            read_trace(j, r);
        else
            weir_rome_numbers_read(j, key, &r->numbers);
}

static void read_layer(weir_made *m, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        int64_t *more = weir_str_eq(key, "layer") ? one_more(j, m->layer, m->n_layers, sizeof *more) : NULL;
        if (!more)
            continue;
        m->layer = more;
        more[m->n_layers++] = weir_json_int(j);
    }
}

static void read_layers(weir_made *m, weir_json *j)
{
    weir_json_array(j);
    while (weir_json_item(j))
        read_layer(m, j);
}

static void read_list(weir_made *m, weir_json *j, void (*read)(weir_json *, weir_made_request *))
{
    weir_json_array(j);
    for (int64_t i = 0; weir_json_item(j); i++) {
        weir_made_request *r = item(m, j, i);
        if (r)
            read(j, r);
    }
}

static void read_prefixes(weir_made *m, weir_json *j)
{
    weir_json_array(j);
    while (weir_json_item(j)) {
        char **more = one_more(j, m->prefix, m->n_prefixes, sizeof *more);
        if (!more)
            return;
        m->prefix = more;
        if ((more[m->n_prefixes] = keep(j)))
            m->n_prefixes++;
    }
}

static void read_options(weir_made *m, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        if (weir_str_eq(key, "bos"))
            m->bos = weir_json_bool(j);
}

static void read_all(weir_made *m, weir_json *j)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "requests"))
            read_list(m, j, read_request);
        else if (weir_str_eq(key, "reports"))
            read_list(m, j, read_report);
        else if (weir_str_eq(key, "statistics"))
            read_layers(m, j);
        else if (weir_str_eq(key, "prefixes"))
            read_prefixes(m, j);
        else if (weir_str_eq(key, "options"))
            read_options(m, j);
    }
    weir_json_end(j);
}

int weir_made_read(weir_made *m, const weir_cli *cli, const char *dir, const char *json)
{
    weir_json j;
    weir_err err = {0};
    *m = (weir_made){0};
    if (!json)
        return weir_cli_error(cli, "%s has no edit.json: nothing says what it is to change", dir);
    weir_json_init(&j, json, strlen(json), "edit.json", &err);
    read_all(m, &j);
    if (weir_json_done(&j) != WEIR_OK)
        return weir_cli_fail_at(cli, dir, &err);
    for (int64_t i = 0; i < m->n; i++)
        if (!m->request[i].prompt || !m->request[i].subject || !m->request[i].target)
            return weir_cli_error(cli, "%s: request %lld of edit.json lacks its prompt, subject or target", dir,
                                  (long long)i);
    return m->n ? WEIR_EXIT_OK : weir_cli_error(cli, "%s: edit.json names no request", dir);
}

void weir_made_free(weir_made *m)
{
    for (int64_t i = 0; i < m->n; i++) {
        free(m->request[i].prompt);
        free(m->request[i].subject);
        free(m->request[i].target);
        free(m->request[i].step);
    }
    for (int64_t i = 0; i < m->n_prefixes; i++)
        free(m->prefix[i]);
    free(m->request);
    free(m->prefix);
    free(m->layer);
    *m = (weir_made){0};
}
