#include "marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/say.h"
#include "nb.h"

void weir_nb_put_hashed(FILE *out, const char *type, const char *source, size_t n)
{
    fprintf(out, "%s %zu\n", type, n);
    fwrite(source, 1, n, out);
}

typedef struct marks {
    bool ours;      /* weir wrote it */
    bool unchanged; /* and its cells are as they were */
} marks;

static void read_cell(weir_json *j, FILE *hashed)
{
    char type[16] = "", *source = NULL;
    size_t n = 0;
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "cell_type")) {
            const weir_str s = weir_json_string(j);
            snprintf(type, sizeof type, "%.*s", (int)(s.n < sizeof type ? s.n : 0), s.p);
        } else if (weir_str_eq(key, "source") && !source) {
            source = weir_nb_read_source(j, &n);
        } else {
            weir_json_skip(j);
        }
    }
    weir_nb_put_hashed(hashed, type, source ? source : "", source ? n : 0);
    free(source);
}

static void read_metadata(weir_json *j, char hex[65], bool *ours)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (!weir_str_eq(key, "weir") || weir_json_peek(j) != WEIR_JSON_OBJECT) {
            weir_json_skip(j);
            continue;
        }
        weir_json_object(j);
        while (weir_json_key(j, &key))
            if (weir_str_eq(key, "cells_sha256")) {
                const weir_str s = weir_json_string(j);
                snprintf(hex, 65, "%.*s", (int)(s.n == 64 ? s.n : 0), s.p);
                *ours = s.n == 64;
            } else {
                weir_json_skip(j);
            }
    }
}

static weir_status read_marks(marks *m, const char *text, size_t n, weir_err *err)
{
    weir_json j;
    weir_str key;
    weir_err none = {0};
    char *hashed = NULL, noted[65] = "", is[65];
    size_t size = 0;
    FILE *h = open_memstream(&hashed, &size);
    *m = (marks){0};
    if (!h)
        return weir_fail(err, WEIR_E_NOMEM, "out of memory");
    weir_json_init(&j, text, n, NULL, &none);
    weir_json_object(&j);
    while (weir_json_key(&j, &key)) {
        if (weir_str_eq(key, "cells")) {
            weir_json_array(&j);
            while (weir_json_item(&j))
                read_cell(&j, h);
        } else if (weir_str_eq(key, "metadata")) {
            read_metadata(&j, noted, &m->ours);
        } else {
            weir_json_skip(&j);
        }
    }
    weir_json_end(&j);
    m->ours = weir_json_done(&j) == WEIR_OK && m->ours;
    const bool ok = fclose(h) == 0;
    if (ok)
        weir_sha256_bytes(hashed, size, is);
    m->unchanged = ok && m->ours && strcmp(is, noted) == 0;
    free(hashed);
    return ok ? WEIR_OK : weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

static int read_all(const weir_cli *cli, const char *path, char **text, size_t *n)
{
    enum { STEP = 1 << 16 };
    FILE *in = fopen(path, "rb"), *out = open_memstream(text, n);
    char buf[STEP];
    bool ok = in && out;
    const int error = errno;
    for (size_t got = STEP; ok && got == STEP;) {
        got = fread(buf, 1, STEP, in);
        fwrite(buf, 1, got, out);
    }
    ok = ok && !ferror(in);
    if (in)
        fclose(in);
    if (!out || fclose(out) != 0) {
        ok = false;
        *text = out ? *text : NULL;
    }
    if (ok)
        return WEIR_EXIT_OK;
    free(*text);
    *text = NULL;
    return weir_cli_error(cli, "cannot read %s: %s", path,
                          in ? "an error of the disk, or out of memory" : strerror(error));
}

int weir_nb_notebook_free(const weir_cli *cli, const char *out)
{
    char *text = NULL;
    size_t n = 0;
    weir_err err = {0};
    marks m;
    if (strcmp(out, "-") == 0)
        return WEIR_EXIT_OK;
    int code = weir_output_place(cli, out);
    if (code != WEIR_EXIT_OK || access(out, F_OK) != 0)
        return code;
    code = read_all(cli, out, &text, &n);
    if (code == WEIR_EXIT_OK && read_marks(&m, text, n, &err) != WEIR_OK)
        code = weir_cli_fail_at(cli, out, &err);
    free(text);
    if (code != WEIR_EXIT_OK || m.unchanged)
        return code;
    if (m.ours)
        return weir_cli_error(cli, "%s was changed since weir wrote it: choose another name with -o, or --force", out);
    return weir_cli_error(cli, "%s exists and is no notebook of weir's: choose another name with -o, or --force", out);
}
