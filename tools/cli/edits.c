#include "edits.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "say.h"

static const weir_opt edit_opts[] = {
    {"edit", 0, NULL, WEIR_OPT_LIST, "DIR", 0, 0, NULL,
     "with an edit of the model's weights: a directory that weir rome made, or a PEFT LoRA adapter. Several add up, in "
     "the order given. One that was made for another model is refused without --force",
     offsetof(weir_edit_args, dir)},
};
const weir_opt_group weir_opts_edit = {"Edits", edit_opts, sizeof edit_opts / sizeof *edit_opts};

int weir_edits_fail(const weir_cli *cli, const weir_err *err)
{
    char line[1400];
    if (err->code != WEIR_E_ARG)
        return weir_cli_fail(cli, err);
    return weir_cli_error(cli, "%s%s", weir_err_line(err, line, sizeof line),
                          weir_cli_has(cli, "force") ? " (--force applies it all the same)" : "");
}

static int open_one(weir_edits *e, const weir_cli *cli, const char *dir, const weir_model *m)
{
    weir_err err = {0};
    const weir_edit_options o = {.log = weir_cli_log(cli),
                                 .force = weir_cli_has(cli, "force") && weir_cli_given(cli, "force")};
    if (weir_edit_open(&e->edit[e->n], m, dir, &o, &err) == WEIR_OK) {
        e->n++;
        return WEIR_EXIT_OK;
    }
    return weir_edits_fail(cli, &err);
}

int weir_edits_open(weir_edits *e, const weir_cli *cli, const weir_edit_args *args, const weir_model *m)
{
    int code = WEIR_EXIT_OK;
    *e = (weir_edits){.edit = calloc((size_t)args->dir.n + 1, sizeof *e->edit)};
    if (!e->edit)
        return weir_cli_error(cli, "out of memory");
    for (int i = 0; i < args->dir.n && code == WEIR_EXIT_OK; i++)
        code = open_one(e, cli, args->dir.v[i], m);
    return code;
}

void weir_edits_free(weir_edits *e)
{
    for (int i = 0; i < e->n; i++)
        weir_edit_free(e->edit[i]);
    free(e->edit);
    *e = (weir_edits){0};
}

/* --- telling */

/* Where directories lie is nobody's business. */
static void write_name(weir_jsonw *w, const char *dir)
{
    size_t n = strlen(dir), from;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    for (from = n; from > 0 && dir[from - 1] != '/';)
        from--;
    weir_jsonw_key(w, "dir");
    weir_jsonw_str(w, dir + from, n - from);
}

void weir_edits_write(const weir_edits *e, weir_jsonw *w)
{
    for (int i = 0; e && i < e->n; i++) {
        const weir_edit_about *a = weir_edit_about_of(e->edit[i]);
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "kind", "edit");
        write_name(w, a->dir);
        weir_jsonw_key_cstr(w, "sha256", a->sha256);
        weir_jsonw_key_cstr(w, "method", a->method);
        weir_jsonw_key_cstr(w, "fingerprint", a->fingerprint);
        weir_jsonw_end(w);
    }
}

char *weir_edits_json(const weir_edits *e)
{
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    weir_jsonw_init(&w, f);
    weir_jsonw_array(&w);
    weir_edits_write(e, &w);
    weir_jsonw_end(&w);
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* --- comparing */

/* Reads one of the changes: is it an edit, and then with this hash? */
static bool is_edit(weir_json *j, const char *sha256, bool *same)
{
    weir_str key;
    bool edit = false;
    *same = false;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        const bool kind = weir_str_eq(key, "kind"), hash = weir_str_eq(key, "sha256");
        if (weir_json_peek(j) != WEIR_JSON_STRING || !(kind || hash)) {
            weir_json_skip(j);
            continue;
        }
        const weir_str text = weir_json_string(j);
        edit |= kind && weir_str_eq(text, "edit");
        *same |= hash && sha256 && weir_str_eq(text, sha256);
    }
    return edit;
}

bool weir_edits_are(const weir_edits *e, const char *json)
{
    weir_json j;
    int n = 0;
    bool all = true;
    weir_json_init(&j, json, strlen(json), NULL, NULL);
    if (weir_json_peek(&j) == WEIR_JSON_ARRAY) {
        weir_json_array(&j);
        while (weir_json_item(&j)) {
            bool same;
            if (!is_edit(&j, n < e->n ? weir_edit_about_of(e->edit[n])->sha256 : NULL, &same))
                continue;
            all &= same;
            n++;
        }
    }
    return weir_json_done(&j) == WEIR_OK && all && n == e->n;
}
