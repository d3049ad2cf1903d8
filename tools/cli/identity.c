#include "identity.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "say.h"

static bool is_file(const char *path, int64_t *bytes)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *bytes = (int64_t)st.st_size;
    return true;
}

bool weir_session_rereadable(const weir_session *s, const char **name)
{
    const weir_docs_options *o = &s->in.text;
    int64_t bytes;
    for (int i = 0; i < o->n_paths; i++) {
        *name = strcmp(o->paths[i], "-") == 0 ? "standard input" : o->paths[i];
        if (!is_file(o->paths[i], &bytes))
            return false;
    }
    return true;
}

static void put_text(weir_jsonw *w, const char *kind, const char *name, int64_t bytes, const char *sha256)
{
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, kind, name);
    weir_jsonw_key_int(w, "bytes", bytes);
    weir_jsonw_key_cstr(w, "sha256", sha256);
    weir_jsonw_end(w);
}

static weir_status put_texts(weir_jsonw *w, const weir_docs_options *o, weir_err *err)
{
    char hex[65];
    weir_jsonw_key(w, "text");
    weir_jsonw_array(w);
    for (int i = 0; i < o->n_texts; i++) {
        weir_sha256_bytes(o->texts[i], strlen(o->texts[i]), hex);
        put_text(w, "argument", "arg", (int64_t)strlen(o->texts[i]), hex);
    }
    for (int i = 0; i < o->n_paths; i++) {
        int64_t bytes = -1;
        bool file = is_file(o->paths[i], &bytes);
        if (file)
            WEIR_TRY(weir_sha256_file(o->paths[i], hex, err));
        put_text(w, "file", o->paths[i], bytes, file ? hex : NULL);
    }
    weir_jsonw_end(w);
    return WEIR_OK;
}

static void put_options(weir_jsonw *w, const weir_session *s)
{
    const weir_session_args *a = s->a;
    if (s->loss)
        weir_jsonw_key_cstr(w, "loss", s->loss);
    weir_jsonw_key_cstr(w, "docs", a->text.docs);
    weir_jsonw_key_cstr(w, "field", a->text.field);
    weir_jsonw_key_int(w, "jsonl", a->text.jsonl);
    if (a->text.chat) {
        weir_jsonw_key_bool(w, "chat", true);
        weir_jsonw_key_cstr(w, "system", a->text.system);
    }
    weir_jsonw_key_int(w, "ids", a->rows.ids);
    weir_jsonw_key_int(w, "max_tokens", a->rows.max_tokens);
    weir_jsonw_key_cstr(w, "positions", a->rows.positions);
}

char *weir_session_identity(const weir_session *s)
{
    char *text = NULL;
    size_t size;
    weir_jsonw w;
    weir_err err = {0};
    FILE *f = open_memstream(&text, &size);
    if (!f) {
        weir_cli_error(s->cli, "out of memory");
        return NULL;
    }
    weir_jsonw_init(&w, f);
    weir_jsonw_object(&w);
    weir_status st = put_texts(&w, &s->in.text, &err);
    if (st == WEIR_OK) {
        put_options(&w, s);
        weir_jsonw_end(&w);
    }
    if (fclose(f) != 0 && st == WEIR_OK)
        st = weir_fail(&err, WEIR_E_NOMEM, "out of memory");
    if (st == WEIR_OK)
        return text;
    free(text);
    weir_cli_fail(s->cli, &err);
    return NULL;
}
