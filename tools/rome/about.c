#include "about.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- edit.json */

static void copy(char *to, size_t n, weir_str s)
{
    snprintf(to, n, "%.*s", (int)(s.n < n ? s.n : n - 1), s.p);
    weir_make_printable(to);
}

/* One request, as far as it has the usual keys. */
static void read_request(weir_json *j, void (*tell)(void *, const char *, const char *, const char *), void *ctx)
{
    char text[3][300] = {"", "", ""};
    static const char *const keys[] = {"prompt", "subject", "target"};
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        int which = -1;
        for (int i = 0; i < 3; i++)
            if (weir_str_eq(key, keys[i]))
                which = i;
        if (which >= 0 && weir_json_peek(j) == WEIR_JSON_STRING)
            copy(text[which], sizeof text[which], weir_json_string(j));
    }
    if (j->status == WEIR_OK && tell)
        tell(ctx, text[0], text[1], text[2]);
}

int64_t weir_rome_requests(const char *json,
                           void (*tell)(void *ctx, const char *prompt, const char *subject, const char *target),
                           void *ctx)
{
    weir_json j;
    weir_str key;
    int64_t n = 0;
    if (!json)
        return 0;
    weir_json_init(&j, json, strlen(json), NULL, NULL);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (!weir_str_eq(key, "requests") || weir_json_peek(&j) != WEIR_JSON_ARRAY)
            continue;
        weir_json_array(&j);
        for (; weir_json_item(&j); n++)
            if (weir_json_peek(&j) == WEIR_JSON_OBJECT)
                read_request(&j, tell, ctx);
    }
    (void)weir_json_done(&j);
    return n;
}

static void read_beneath(weir_json *j, void (*tell)(const char *))
{
    char dir[600] = "";
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key))
        if (weir_str_eq(key, "dir") && weir_json_peek(j) == WEIR_JSON_STRING)
            copy(dir, sizeof dir, weir_json_string(j));
    if (j->status == WEIR_OK)
        tell(dir);
}

void weir_rome_beneath(const char *json, void (*tell)(const char *dir))
{
    weir_json j;
    weir_str key;
    if (!json)
        return;
    weir_json_init(&j, json, strlen(json), NULL, NULL);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (!weir_str_eq(key, "edits") || weir_json_peek(&j) != WEIR_JSON_ARRAY)
            continue;
        weir_json_array(&j);
        while (weir_json_item(&j))
            if (weir_json_peek(&j) == WEIR_JSON_OBJECT)
                read_beneath(&j, tell);
    }
    (void)weir_json_done(&j);
}

/* --- a line */

typedef struct first {
    FILE *out;
    bool done;
} first;

static void put_first(void *ctx, const char *prompt, const char *subject, const char *target)
{
    first *f = ctx;
    const char *hole = strstr(prompt, "{}");
    if (f->done)
        return;
    f->done = true;
    if (hole)
        fprintf(f->out, "  %.*s%s%s ->%s%s", (int)(hole - prompt), prompt, subject, hole + 2, *target == ' ' ? "" : " ",
                target);
    else
        fprintf(f->out, "  %s %s ->%s%s", prompt, subject, *target == ' ' ? "" : " ", target);
}

/* The whole |dW|: modules are apart, so that squares add up. */
static double size_of(const weir_edit_module *m, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += m[i].norm * m[i].norm;
    return sqrt(sum);
}

static int64_t rank_of(const weir_edit_module *m, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = m[i].r > most ? m[i].r : most;
    return most;
}

void weir_rome_about_line(const weir_edit_look *l, FILE *out)
{
    const weir_edit_about *a = weir_edit_look_about(l);
    const weir_edit_module *m;
    const int64_t n = weir_edit_look_modules(l, &m);
    char dir[600];
    snprintf(dir, sizeof dir, "%s", a->dir);
    weir_make_printable(dir);
    fprintf(out, "%-24s  %-10s", dir, a->method ? a->method : "adapter");
    if (n == 1)
        fprintf(out, "  %s, rank %lld", m[0].name, (long long)m[0].r);
    else
        fprintf(out, "  %lld modules, rank %lld", (long long)n, (long long)rank_of(m, n));
    fprintf(out, ", |dW| %.4g", size_of(m, n));
    first f = {.out = out};
    const int64_t requests = weir_rome_requests(a->json, put_first, &f);
    if (requests > 1)
        fprintf(out, " and %lld more", (long long)(requests - 1));
    fputc('\n', out);
}

/* --- JSON */

static void write_modules(weir_jsonw *w, const weir_edit_module *m, int64_t n)
{
    weir_jsonw_key(w, "modules");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "name", m[i].name);
        weir_jsonw_key_int(w, "rank", m[i].r);
        weir_jsonw_key_int(w, "in", m[i].in);
        weir_jsonw_key_int(w, "out", m[i].out);
        weir_jsonw_key_double(w, "delta", m[i].norm);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

void weir_rome_about_json(weir_jsonw *w, const weir_edit_look *l, bool modules)
{
    const weir_edit_about *a = weir_edit_look_about(l);
    const weir_edit_module *m;
    const int64_t n = weir_edit_look_modules(l, &m);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "dir", a->dir);
    weir_jsonw_key_cstr(w, "method", a->method);
    weir_jsonw_key_cstr(w, "base_model", a->base_model);
    weir_jsonw_key_cstr(w, "fingerprint", a->fingerprint);
    weir_jsonw_key_cstr(w, "sha256", a->sha256);
    weir_jsonw_key_int(w, "matrices", n);
    weir_jsonw_key_int(w, "rank", rank_of(m, n));
    weir_jsonw_key_double(w, "delta", size_of(m, n));
    weir_jsonw_key_int(w, "requests", weir_rome_requests(a->json, NULL, NULL));
    if (modules) {
        write_modules(w, m, n);
        weir_jsonw_key(w, "edit");
        weir_jsonw_json(w, a->json);
    }
    weir_jsonw_end(w);
}
