#include "texts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"

enum { SENTENCES = 100 /* of the model's own text: enough to see an edit that does harm, and soon read */ };

/* --- reading */

static int out_of_memory(const weir_cli *cli)
{
    return weir_cli_error(cli, "out of memory");
}

/* The whole file; to be freed. */
static int read_file(const weir_cli *cli, const char *path, char **text, size_t *n)
{
    char buf[1 << 16];
    size_t size;
    FILE *f = fopen(path, "rb"), *out = open_memstream(text, n);
    while (f && out && (size = fread(buf, 1, sizeof buf, f)) > 0)
        fwrite(buf, 1, size, out);
    const bool read = f && !ferror(f), kept = out && fclose(out) == 0;
    if (f)
        fclose(f);
    if (!kept)
        return out_of_memory(cli);
    return read ? WEIR_EXIT_OK : weir_cli_error(cli, "%s: cannot be read", path);
}

static bool append(weir_rome_texts *t, const char *p, size_t n)
{
    weir_str *more = realloc(t->text, ((size_t)t->n + 1) * sizeof *more);
    if (!more)
        return false;
    t->text = more;
    t->text[t->n++] = (weir_str){p, n};
    return true;
}

/* Strings of the JSON array go into room, one behind the other; a text is a place in it. */
static bool read_string(weir_json *j, FILE *room, size_t *n)
{
    const weir_str s = weir_json_string(j);
    *n = s.n;
    return fwrite(s.p ? s.p : "", 1, s.n, room) == s.n;
}

static bool read_item(weir_json *j, FILE *room, size_t *n)
{
    weir_str key;
    bool found = false;
    if (weir_json_peek(j) == WEIR_JSON_STRING)
        return read_string(j, room, n);
    weir_json_object(j);
    while (weir_json_key(j, &key))
        if (weir_str_eq(key, "Text"))
            found = read_string(j, room, n);
    return found;
}

static int read_json(weir_rome_texts *t, const weir_cli *cli, const char *path, const char *bytes, size_t size)
{
    weir_json j;
    weir_err err = {0};
    size_t total;
    bool ok = true;
    FILE *room = open_memstream(&t->room, &total);
    if (!room)
        return out_of_memory(cli);
    weir_json_init(&j, bytes, size, path, &err);
    weir_json_array(&j);
    while (ok && weir_json_item(&j)) {
        size_t n = 0;
        if (!read_item(&j, room, &n))
            weir_json_fail(&j, "a text is a string, or an object with the key \"Text\"");
        ok = append(t, NULL, n);
    }
    weir_json_end(&j);
    const weir_status st = weir_json_done(&j);
    ok = fclose(room) == 0 && ok;
    if (st != WEIR_OK)
        return weir_cli_fail(cli, &err);
    const char *at = t->room;
    for (int64_t i = 0; ok && i < t->n; at += t->text[i++].n)
        t->text[i].p = at;
    return ok ? WEIR_EXIT_OK : out_of_memory(cli);
}

static bool cut_lines(weir_rome_texts *t, size_t size)
{
    bool ok = true;
    for (const char *p = t->room, *end = p + size; ok && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        if (stop > p)
            ok = append(t, p, (size_t)(stop - p));
        p = stop + 1;
    }
    return ok;
}

static int note_sum(weir_rome_texts *t, const weir_cli *cli)
{
    char *all = NULL;
    size_t n;
    FILE *f = open_memstream(&all, &n);
    for (int64_t i = 0; f && i < t->n; i++)
        fwrite(t->text[i].p, 1, t->text[i].n, f);
    if (!f || fclose(f) != 0)
        return out_of_memory(cli);
    weir_sha256_bytes(all, n, t->sha256);
    free(all);
    return WEIR_EXIT_OK;
}

int weir_rome_texts_read(weir_rome_texts *t, const weir_cli *cli, const char *path, bool lines)
{
    char *bytes = NULL;
    size_t size = 0;
    const char *slash = strrchr(path, '/');
    *t = (weir_rome_texts){.name = slash ? slash + 1 : path};
    int code = read_file(cli, path, &bytes, &size);
    const size_t blank = code == WEIR_EXIT_OK ? strspn(bytes, " \t\r\n") : 0;
    if (code == WEIR_EXIT_OK && blank < size && bytes[blank] == '[') {
        code = read_json(t, cli, path, bytes, size);
    } else if (code == WEIR_EXIT_OK) {
        t->room = bytes;
        bytes = NULL;
        if (!(lines ? cut_lines(t, size) : append(t, t->room, size)))
            code = out_of_memory(cli);
    }
    free(bytes);
    return code == WEIR_EXIT_OK ? note_sum(t, cli) : code;
}

static int take_prefixes(weir_rome_texts *t, const weir_editor *e)
{
    *t = (weir_rome_texts){.name = "prefixes"};
    for (int64_t i = 0; i < weir_rome_prefixes_n(e->prefixes); i++) {
        const char *p = weir_rome_prefix(e->prefixes, i);
        if (!append(t, p, strlen(p)))
            return out_of_memory(e->cli);
    }
    return note_sum(t, e->cli);
}

char *weir_rome_model_file(const weir_editor *e, const char *name)
{
    char *path = malloc(strlen(e->model_path) + strlen(name) + 2);
    if (path)
        sprintf(path, "%s/%s", e->model_path, name);
    return path;
}

int weir_rome_texts_open(weir_rome_texts *t, const weir_editor *e, const char *path)
{
    *t = (weir_rome_texts){0};
    if (path)
        return weir_rome_texts_read(t, e->cli, path, false);
    char *own = weir_rome_model_file(e, "sentences.txt");
    if (!own)
        return out_of_memory(e->cli);
    const bool there = access(own, R_OK) == 0;
    const int code = there ? weir_rome_texts_read(t, e->cli, own, true) : take_prefixes(t, e);
    if (there)
        t->name = "sentences.txt"; /* the path is gone */
    if (there && t->n > SENTENCES)
        t->n = SENTENCES;
    free(own);
    return code;
}

void weir_rome_texts_free(weir_rome_texts *t)
{
    free(t->text);
    free(t->room);
    *t = (weir_rome_texts){0};
}

/* --- options */

int weir_rome_range(const weir_cli *cli, const char *text, int64_t n, int64_t *first, int64_t *end)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    char from[32] = "0";
    *first = 0, *end = n;
    if (!text)
        return WEIR_EXIT_OK;
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len && len < sizeof from) {
        memcpy(from, text, len);
        from[len] = 0;
    }
    if (len >= sizeof from || !weir_parse_int(from, first) || (colon && colon[1] && !weir_parse_int(colon + 1, end)) ||
        *first < 0 || *end > n || *first >= *end)
        return weir_cli_usage(cli, "--records %s: A:B with 0 <= A < B <= %lld", text, (long long)n);
    return WEIR_EXIT_OK;
}

int weir_rome_pairs(weir_rome_pair **out, const weir_cli *cli, const char *option, const weir_opt_list *list)
{
    weir_rome_pair *p = *out = calloc((size_t)list->n + 1, sizeof *p);
    if (!p)
        return out_of_memory(cli);
    for (int i = 0; i < list->n; i++) {
        p[i].prompt = strdup(list->v[i]);
        if (!p[i].prompt)
            return out_of_memory(cli);
        char *cut = strrchr(p[i].prompt, '=');
        if (!cut || cut == p[i].prompt || !cut[1])
            return weir_cli_usage(cli, "--%s %s: PROMPT=ANSWER is needed", option, list->v[i]);
        *cut = 0;
        p[i].answer = cut + 1;
    }
    return WEIR_EXIT_OK;
}

void weir_rome_pairs_free(weir_rome_pair *p, int n)
{
    for (int i = 0; p && i < n; i++)
        free(p[i].prompt);
    free(p);
}
