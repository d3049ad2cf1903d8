/* A fitted lens as a directory: config.json and params.safetensors as weir/tuned.h has them, and fit.json, which says
 * how it was made. The directory is made beside its place and renamed. */
#include <stdio.h>

#include <weir/json.h>

#include "../io/filemap.h"
#include "../io/outdir.h"
#include "../io/safetensors_write.h"
#include "fit.h"
#include "tuned_config.h"

/* params.pt is what the user has made of params.safetensors. */
static const char *const files[] = {WEIR_TUNED_CONFIG, WEIR_TUNED_PARAMS, WEIR_TUNED_FIT, "params.pt", NULL};
static const weir_outdir_kind kind = {"a lens", files};

weir_status weir_fit_may_save(const char *dir, weir_err *err)
{
    bool ours = false;
    char *fit = weir_path_join(dir, WEIR_TUNED_FIT);
    if (!fit)
        return weir_nomem(err, "a path");
    const weir_status s = weir_tuned_is_ours(&ours, fit, err);
    weir_free(fit);
    return s == WEIR_OK ? weir_outdir_may(dir, &kind, ours, err) : s;
}

/* --- the files */

typedef struct lens {
    const weir_fit *f;
    const weir_fit_about *about;
    char params[65]; /* SHA-256 of params.safetensors, once it is written */
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

static void add_tensor(weir_st_head *h, int64_t i, const char *what, int rank, int64_t c)
{
    char name[48];
    snprintf(name, sizeof name, "%lld.%s", (long long)i, what);
    weir_st_head_add(h, name, rank, (const int64_t[]){c, c});
}

static void write_params(void *ctx, FILE *out)
{
    const weir_fit *f = ((const lens *)ctx)->f;
    weir_st_head h;
    weir_st_head_begin(&h, out, NULL);
    for (int64_t i = 0; i < f->spec->L; i++) {
        add_tensor(&h, i, "weight", 2, f->spec->C);
        add_tensor(&h, i, "bias", 1, f->spec->C);
    }
    weir_st_head_end(&h);
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
    weir_jsonw_key_cstr(&w, "params_sha256", ((const lens *)ctx)->params);
    write_losses(&w, f, about);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

/* --- the directory */

static weir_status hash_params(lens *l, const weir_outdir *d, weir_err *err)
{
    char *path = weir_path_join(weir_outdir_part(d), WEIR_TUNED_PARAMS);
    if (!path)
        return weir_nomem(err, "a path");
    const weir_status st = weir_sha256_file(path, l->params, err);
    weir_free(path);
    return st;
}

static weir_status write_lens(lens *l, weir_outdir *d, weir_err *err)
{
    WEIR_TRY(weir_outdir_put(d, WEIR_TUNED_CONFIG, write_config, l, err));
    WEIR_TRY(weir_outdir_put(d, WEIR_TUNED_PARAMS, write_params, l, err));
    WEIR_TRY(hash_params(l, d, err));
    return weir_outdir_put(d, WEIR_TUNED_FIT, write_about, l, err);
}

weir_status weir_fit_save(const weir_fit *f, const char *dir, const weir_fit_about *about, weir_err *err)
{
    weir_outdir *d;
    WEIR_TRY(weir_fit_may_save(dir, err));
    WEIR_TRY(weir_outdir_open(&d, dir, &kind, err));
    const weir_status s = write_lens(&(lens){.f = f, .about = about}, d, err);
    if (s == WEIR_OK)
        return weir_outdir_commit(d, err);
    weir_outdir_abort(d);
    return s;
}
