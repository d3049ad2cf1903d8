/* A fitted lens as a directory: config.json and params.safetensors as weir/tuned.h has them, and fit.json, which says
 * how it was made. The directory is made beside its place and renamed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/json.h>

#include "../io/filemap.h"
#include "fit.h"
#include "tuned_config.h"

/* All that may lie in a lens of weir's; params.pt is what the user has made of it. */
static const char *const FILES[] = {WEIR_TUNED_CONFIG, WEIR_TUNED_PARAMS, WEIR_TUNED_FIT, "params.pt"};
enum { N_FILES = sizeof FILES / sizeof *FILES };

static weir_status fail_at(weir_err *err, const char *path, const char *what)
{
    weir_fail(err, WEIR_E_IO, "%s: %s", what, strerror(errno));
    weir_err_where(err, path, NULL, -1);
    return WEIR_E_IO;
}

static weir_status refuse(weir_err *err, const char *dir, const char *why)
{
    weir_fail(err, WEIR_E_ARG, "it exists and %s: choose another name", why);
    weir_err_where(err, dir, NULL, -1);
    return WEIR_E_ARG;
}

/* --- may it be replaced? */

static bool is_known(const char *name)
{
    for (int i = 0; i < N_FILES; i++)
        if (strcmp(name, FILES[i]) == 0)
            return true;
    return false;
}

/* ours: what fit.json says. An empty directory has none and is as good. */
static weir_status check_entries(const char *dir, bool ours, weir_err *err)
{
    char why[300] = "";
    DIR *d = opendir(dir);
    if (!d)
        return fail_at(err, dir, "cannot read it");
    for (struct dirent *e; (e = readdir(d)) && !*why;) {
        const bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots && !ours)
            snprintf(why, sizeof why, "is no lens that weir made");
        else if (!dots && !is_known(e->d_name))
            snprintf(why, sizeof why, "holds %.200s, which is no part of a lens", e->d_name);
    }
    closedir(d);
    return *why ? refuse(err, dir, why) : WEIR_OK;
}

weir_status weir_fit_may_save(const char *dir, weir_err *err)
{
    struct stat st;
    if (!*dir)
        return weir_fail(err, WEIR_E_ARG, "the lens's directory has an empty name");
    if (lstat(dir, &st) != 0)
        return errno == ENOENT ? WEIR_OK : fail_at(err, dir, "cannot look at it");
    if (!S_ISDIR(st.st_mode))
        return refuse(err, dir, "is no directory");
    char *fit = weir_path_join(dir, WEIR_TUNED_FIT);
    if (!fit)
        return weir_nomem(err, "a path");
    bool ours;
    const weir_status s = weir_tuned_is_ours(&ours, fit, err);
    weir_free(fit);
    return s == WEIR_OK ? check_entries(dir, ours, err) : s;
}

/* --- the files */

/* Opens DIR/NAME, lets `write` fill it, and closes it. */
static weir_status write_file(const char *dir, const char *name, void (*write)(void *ctx, FILE *out), void *ctx,
                              weir_err *err)
{
    weir_outfile *f;
    char *path = weir_path_join(dir, name);
    if (!path)
        return weir_nomem(err, "a path");
    weir_status s = weir_outfile_open(&f, path, true, err);
    weir_free(path);
    if (s != WEIR_OK)
        return s;
    write(ctx, weir_outfile_stream(f));
    return weir_outfile_commit(f, err);
}

typedef struct lens {
    const weir_fit *f;
    const weir_fit_about *about;
} lens;

static void write_config(void *ctx, FILE *out)
{
    const lens *l = ctx;
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "base_model_name_or_path", l->about->base_model ? l->about->base_model : "");
    weir_jsonw_key_int(&w, "d_model", l->f->spec->C);
    weir_jsonw_key_int(&w, "num_hidden_layers", l->f->spec->L);
    weir_jsonw_key_bool(&w, "bias", true);
    weir_jsonw_key_cstr(&w, "base_model_revision", NULL);
    weir_jsonw_key_cstr(&w, "unembed_hash", NULL); /* not checked by tuned-lens then */
    weir_jsonw_key_cstr(&w, "lens_type", WEIR_TUNED_TYPE);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

static void write_entry(weir_jsonw *w, int64_t i, const char *what, int rank, int64_t c, int64_t *at)
{
    char name[48];
    const int64_t bytes = (rank == 2 ? c * c : c) * (int64_t)sizeof(float);
    snprintf(name, sizeof name, "%lld.%s", (long long)i, what);
    weir_jsonw_key(w, name);
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "dtype", "F32");
    weir_jsonw_key(w, "shape");
    weir_jsonw_array(w);
    for (int axis = 0; axis < rank; axis++)
        weir_jsonw_int(w, c);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "data_offsets");
    weir_jsonw_array(w);
    weir_jsonw_int(w, *at);
    weir_jsonw_int(w, *at += bytes);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void write_header(const weir_fit *f, FILE *out)
{
    weir_jsonw w;
    int64_t at = 0;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    for (int64_t i = 0; i < f->spec->L; i++) {
        write_entry(&w, i, "weight", 2, f->spec->C, &at);
        write_entry(&w, i, "bias", 1, f->spec->C, &at);
    }
    weir_jsonw_end(&w);
}

/* The header's length comes first, so it is written twice, once to be measured. Spaces bring the numbers behind it to a
 * multiple of 8 bytes. */
static void write_params(void *ctx, FILE *out)
{
    const weir_fit *f = ((const lens *)ctx)->f;
    uint8_t length[8];
    fwrite("\0\0\0\0\0\0\0", 1, sizeof length, out);
    write_header(f, out);
    while (ftell(out) % 8)
        fputc(' ', out);
    const int64_t end = ftell(out), n = end - (int64_t)sizeof length;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(n >> 8 * i);
    fseek(out, 0, SEEK_SET);
    fwrite(length, 1, sizeof length, out);
    fseek(out, end, SEEK_SET);
    fwrite(f->theta, sizeof *f->theta, (size_t)(f->spec->L * f->size), out);
}

static void write_losses(weir_jsonw *w, const weir_fit *f, const weir_fit_about *about)
{
    weir_jsonw_key(w, "kl"); /* [{translator, plain, tuned}], nats */
    weir_jsonw_array(w);
    for (int64_t i = 0; about->plain && about->tuned && i < f->spec->L; i++) {
        weir_jsonw_object(w);
        weir_jsonw_key_int(w, "translator", i);
        weir_jsonw_key_double(w, "plain", about->plain[i]);
        weir_jsonw_key_double(w, "tuned", about->tuned[i]);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void write_about(void *ctx, FILE *out)
{
    const weir_fit *f = ((const lens *)ctx)->f;
    const weir_fit_about *about = ((const lens *)ctx)->about;
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", WEIR_TUNED_FORMAT);
    weir_jsonw_key_int(&w, "format_version", 1);
    weir_jsonw_key_cstr(&w, "weir", weir_version());
    weir_jsonw_key_cstr(&w, "model", about->base_model);
    weir_jsonw_key_cstr(&w, "fingerprint", about->fingerprint);
    weir_jsonw_key_cstr(&w, "tokenizer", about->tokenizer);
    weir_jsonw_key_cstr(&w, "command_line", about->command_line);
    weir_jsonw_key(&w, "text");
    weir_jsonw_json(&w, about->text);
    weir_jsonw_key(&w, "interventions");
    weir_jsonw_json(&w, about->interventions);
    weir_jsonw_key_int(&w, "steps", f->steps);
    weir_jsonw_key_int(&w, "tokens_per_step", f->o.step_rows);
    weir_jsonw_key_double(&w, "lr", f->o.lr);
    weir_jsonw_key_double(&w, "weight_decay", f->o.weight_decay);
    weir_jsonw_key_double(&w, "clip", f->o.clip);
    weir_jsonw_key_int(&w, "seed", (int64_t)about->seed);
    weir_jsonw_key_int(&w, "held_out_tokens", about->held_out);
    write_losses(&w, f, about);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* --- the directory */

/* Removes a lens, or what a run that was killed left of one, as far as the directory holds nothing else. */
static bool remove_lens(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    for (int i = 0; i < N_FILES; i++) {
        char part[40];
        snprintf(part, sizeof part, "%s.part", FILES[i]); /* as weir_outfile_open has it */
        unlinkat(fd, part, 0);
        unlinkat(fd, FILES[i], 0);
    }
    close(fd);
    return rmdir(dir) == 0;
}

/* From here on the new lens has the name. Both directories change names at once where the system can do that. */
static weir_status publish(const char *part, const char *dir, weir_err *err)
{
    if (rename(part, dir) == 0)
        return WEIR_OK; /* there was none, or an empty one */
    if (renameat2(AT_FDCWD, part, AT_FDCWD, dir, RENAME_EXCHANGE) == 0) {
        remove_lens(part);
        return WEIR_OK;
    }
    if (!remove_lens(dir) || rename(part, dir) != 0)
        return fail_at(err, dir, "cannot rename the finished lens");
    return WEIR_OK;
}

static weir_status write_lens(const lens *l, const char *part, weir_err *err)
{
    if (!remove_lens(part) || mkdir(part, 0777) != 0)
        return fail_at(err, part, "cannot create it");
    WEIR_TRY(write_file(part, WEIR_TUNED_CONFIG, write_config, (void *)l, err));
    WEIR_TRY(write_file(part, WEIR_TUNED_PARAMS, write_params, (void *)l, err));
    return write_file(part, WEIR_TUNED_FIT, write_about, (void *)l, err);
}

weir_status weir_fit_save(const weir_fit *f, const char *dir, const weir_fit_about *about, weir_err *err)
{
    WEIR_TRY(weir_fit_may_save(dir, err));
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    weir_buf part = {0};
    char *name = weir_strndup(dir, n);
    weir_status s = name && weir_buf_printf(&part, "%s.part", name) == WEIR_OK ? WEIR_OK : weir_nomem(err, "a path");
    if (s == WEIR_OK) {
        s = write_lens(&(lens){f, about}, part.p, err);
        if (s == WEIR_OK)
            s = publish(part.p, name, err);
        if (s != WEIR_OK)
            remove_lens(part.p);
    }
    weir_buf_free(&part);
    weir_free(name);
    return s;
}
