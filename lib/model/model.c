/* Opening, freeing, and what a model says about itself. */
#include <dirent.h>
#include <string.h>

#include "../base/parallel.h"
#include "impl.h"

void weir_model_options_init(weir_model_options *o)
{
    *o = (weir_model_options){0};
}

/* --- a directory that only holds GGUF files: say what to type */

static bool is_gguf_name(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".gguf");
}

/* The first .gguf file of a directory by name. */
static bool find_gguf(const char *dir, char *name, size_t n)
{
    DIR *d = opendir(dir);
    name[0] = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_gguf_name(e->d_name) && (!name[0] || strcmp(e->d_name, name) < 0))
            snprintf(name, n, "%s", e->d_name);
    if (d)
        closedir(d);
    return name[0] != '\0';
}

static weir_status check_path(const char *path, weir_err *err)
{
    if (!weir_path_is_dir(path))
        return WEIR_OK;
    char *config = weir_path_join(path, "config.json"), name[256];
    if (!config)
        return weir_nomem(err, "a path");
    bool there = weir_path_is_file(config);
    weir_free(config);
    if (there || !find_gguf(path, name, sizeof name))
        return WEIR_OK;
    char *full = weir_path_join(path, name);
    if (!full)
        return weir_nomem(err, "a path");
    weir_fail(err, WEIR_E_ARG, "the directory holds no config.json but a GGUF file: name the file, %s", full);
    weir_err_where(err, path, NULL, -1);
    weir_free(full);
    return WEIR_E_ARG;
}

/* --- the steps of opening */

static weir_status read_config(weir_model *m, const weir_log *log, weir_err *err)
{
    bool gguf = m->ck.is_gguf;
    if (gguf)
        WEIR_TRY(weir_config_read_gguf(&m->cfg, &m->arena, &m->ck.gguf, err));
    else
        WEIR_TRY(weir_config_read_hf(&m->cfg, &m->arena, &m->ck.config, log, err));
    m->layout = gguf ? &m->cfg.arch->gguf_tensors : &m->cfg.arch->hf_tensors;
    return weir_config_resolve(&m->cfg, gguf, &m->arena, &m->spec, &m->window, err);
}

/* The RoPE table's frequencies; divisors out of the file if it has them. */
static weir_status make_rope(weir_model *m, weir_err *err)
{
    const weir_tensor *t = weir_slot(m, -1, WEIR_ROLE_ROPE_FREQS);
    const int64_t half = m->spec.rot / 2;
    if (m->spec.positions != WEIR_POS_ROPE)
        return WEIR_OK;
    float *inv = weir_arena_alloc(&m->arena, (size_t)half, sizeof *inv), *divisors = NULL;
    if (t && inv && (divisors = weir_arena_alloc(&m->arena, (size_t)half, sizeof *divisors)))
        weir_vector_read(t, divisors, half);
    if (!inv || (t && !divisors))
        return weir_nomem(err, "the RoPE frequencies");
    for (int64_t i = 0; t && i < half; i++)
        if (!(divisors[i] > 0)) {
            weir_fail(err, WEIR_E_FORMAT, "divisor %lld of the RoPE frequencies is not positive", (long long)i);
            weir_err_where(err, t->file, t->name, t->offset);
            return WEIR_E_FORMAT;
        }
    weir_rope_inv_freq(inv, m->spec.rot, m->cfg.v[WEIR_CFG_ROPE_THETA], &m->cfg.rope, divisors);
    m->spec.inv_freq = inv;
    return WEIR_OK;
}

/* Last part of a path, without slashes at its end. */
static const char *last_part(weir_arena *arena, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    const char *from = path + n;
    while (from > path && from[-1] != '/')
        from--;
    return weir_arena_strndup(arena, from, n - (size_t)(from - path));
}

static const char *most_common_dtype(const weir_model *m, int64_t *parameters)
{
    int64_t count[WEIR_DTYPE_COUNT + 1] = {0}, best = 0;
    *parameters = 0;
    for (int64_t i = 0; i < m->n_used; i++) {
        const weir_tensor *t = m->used[i];
        int64_t n = t->rank > 1 ? t->shape[0] * t->shape[1] : t->shape[0];
        count[t->dtype] += n;
        *parameters += n;
    }
    for (int64_t t = 1; t < WEIR_DTYPE_COUNT; t++)
        if (count[t] > count[best])
            best = t;
    return weir_dtype_name((weir_dtype)best);
}

static weir_status describe(weir_model *m, weir_err *err)
{
    const weir_spec *s = &m->spec;
    weir_model_info *i = &m->info;
    i->name = m->cfg.name ? m->cfg.name : last_part(&m->arena, i->path);
    if (!i->name)
        return weir_nomem(err, "the model's name");
    i->family = m->cfg.arch->family;
    i->model_type = m->cfg.model_type;
    i->format = m->ck.is_gguf ? "gguf" : "safetensors";
    i->dtype = most_common_dtype(m, &i->parameters);
    i->L = s->L;
    i->C = s->C;
    i->F = s->F;
    i->H = s->H;
    i->K = s->K;
    i->D = s->D;
    i->V = s->V;
    i->ctx = s->ctx;
    i->gated = s->gated;
    i->parallel = s->parallel;
    i->tied = m->tied;
    return WEIR_OK;
}

static weir_status open_model(weir_model *m, const char *path, const weir_log *log, weir_err *err)
{
    m->info.path = weir_arena_strndup(&m->arena, path, strlen(path));
    if (!m->info.path)
        return weir_nomem(err, "opening a model");
    WEIR_TRY(check_path(path, err));
    WEIR_TRY(weir_checkpoint_open(&m->ck, path, err));
    WEIR_TRY(read_config(m, log, err));
    WEIR_TRY(weir_bind(m, log, err));
    WEIR_TRY(make_rope(m, err));
    WEIR_TRY(weir_leases_init(m, err));
    return describe(m, err);
}

weir_status weir_model_open(weir_model **out, const char *path, const weir_model_options *o, weir_err *err)
{
    char brook[4096];
    weir_err local = {0};
    err = err ? err : &local;
    *out = NULL;
    if (!path && !(path = weir_brook_path(brook, sizeof brook, err)))
        return err->code;
    weir_model *m = weir_calloc(1, sizeof *m);
    if (!m)
        return weir_nomem(err, "opening a model");
    if (pthread_mutex_init(&m->lock, NULL)) {
        weir_free(m);
        return weir_nomem(err, "a lock");
    }
    m->threads = weir_threads(o ? o->threads : 0);
    weir_status s = open_model(m, path, o ? &o->log : NULL, err);
    if (s != WEIR_OK) {
        weir_model_free(m);
        return s;
    }
    *out = m;
    return WEIR_OK;
}

void weir_model_free(weir_model *m)
{
    if (!m)
        return;
    weir_leases_free(m);
    weir_checkpoint_close(&m->ck);
    weir_arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    weir_free(m);
}

/* --- questions */

const weir_model_info *weir_model_info_of(const weir_model *m)
{
    return &m->info;
}

const weir_spec *weir_model_spec(const weir_model *m)
{
    return &m->spec;
}

weir_model_memory weir_model_memory_of(const weir_model *m)
{
    weir_model *w = (weir_model *)m; /* atomic_load of C11 takes no const */
    return (weir_model_memory){.mapped = m->ck.mapped + (int64_t)m->ck.config.size,
                               .panels = atomic_load(&w->panel_bytes),
                               .other = atomic_load(&w->other_bytes),
                               .packed_again = atomic_load(&w->packed_again)};
}

int64_t weir_model_n_tensors(const weir_model *m)
{
    return m->n_used;
}

const weir_tensor *weir_model_tensor(const weir_model *m, int64_t i)
{
    return i >= 0 && i < m->n_used ? m->used[i] : NULL;
}
