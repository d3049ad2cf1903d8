/* Tensor names to roles, and the checks that go with it. */
#include <string.h>

#include "impl.h"

/* --- names */

/* Does `name` follow the pattern? # in it is the layer, in decimal without leading zeros. */
static bool match(const char *pattern, const char *name, int64_t *layer)
{
    const char *hash = strchr(pattern, '#');
    *layer = -1;
    if (!hash)
        return !strcmp(pattern, name);
    size_t n = (size_t)(hash - pattern);
    if (strncmp(pattern, name, n) != 0)
        return false;
    const char *p = name + n;
    int64_t v = 0;
    size_t digits = strspn(p, "0123456789");
    if (!digits || digits > 9 || (digits > 1 && *p == '0'))
        return false;
    for (size_t i = 0; i < digits; i++)
        v = 10 * v + (p[i] - '0');
    *layer = v;
    return !strcmp(hash + 1, p + digits);
}

/* The layout's prefix may be there or not. */
static const char *without_prefix(const weir_layout *l, const char *name)
{
    size_t n = l->prefix ? strlen(l->prefix) : 0;
    return n && !strncmp(name, l->prefix, n) ? name + n : name;
}

const weir_name *weir_name_find(const weir_layout *l, const char *name, int64_t *layer)
{
    name = without_prefix(l, name);
    for (const weir_name *e = l->name; e->role != WEIR_ROLE_END; e++)
        if (match(e->pattern, name, layer))
            return e;
    return NULL;
}

static bool is_ignored(const weir_layout *l, const char *name)
{
    int64_t layer;
    name = without_prefix(l, name);
    for (const char *const *p = l->ignore; p && *p; p++)
        if (match(*p, name, &layer))
            return true;
    return false;
}

/* The name of a tensor that is missing, as the checkpoint would have it. */
static void spell(char *buf, size_t n, const weir_model *m, const weir_name *e, int64_t layer)
{
    const char *hash = strchr(e->pattern, '#'), *prefix = m->layout->prefix;
    const weir_tensor *embed = weir_slot(m, -1, WEIR_ROLE_EMBED);
    bool bare = e->role == WEIR_ROLE_HEAD || !prefix || (embed && strncmp(embed->name, prefix, strlen(prefix)) != 0);
    if (hash)
        snprintf(buf, n, "%s%.*s%lld%s", bare ? "" : prefix, (int)(hash - e->pattern), e->pattern, (long long)layer,
                 hash + 1);
    else
        snprintf(buf, n, "%s%s", bare ? "" : prefix, e->pattern);
}

/* --- placing */

static weir_status fail(const weir_tensor *t, weir_err *err, weir_status code, const char *msg)
{
    weir_fail(err, code, "%s", msg);
    weir_err_where(err, t->file, t->name, t->offset);
    return code;
}

static bool wanted(const weir_model *m, weir_when when)
{
    return when == WEIR_ALWAYS || (when == WEIR_IF_ATTN_BIAS && m->cfg.v[WEIR_CFG_ATTN_BIAS] > 0) ||
           (when == WEIR_IF_MLP_BIAS && m->cfg.v[WEIR_CFG_MLP_BIAS] > 0);
}

static weir_status place(weir_model *m, const weir_tensor *t, const weir_name *e, int64_t layer, weir_err *err)
{
    char msg[256];
    if (layer >= m->spec.L) {
        snprintf(msg, sizeof msg, "layer %lld in a model of %lld layers (counted from 0)", (long long)layer,
                 (long long)m->spec.L);
        return fail(t, err, WEIR_E_FORMAT, msg);
    }
    if (!wanted(m, e->when) && e->when != WEIR_IF_STORED) {
        snprintf(msg, sizeof msg, "surplus: the configuration says that there is no such bias (%s)",
                 e->when == WEIR_IF_ATTN_BIAS ? "attention_bias" : "mlp_bias");
        return fail(t, err, WEIR_E_FORMAT, msg);
    }
    const weir_tensor **slot = &m->slot[(layer + 1) * WEIR_ROLE_COUNT + e->role];
    if (*slot) {
        snprintf(msg, sizeof msg, "the checkpoint has this weight twice, also as %.150s", (*slot)->name);
        return fail(t, err, WEIR_E_FORMAT, msg);
    }
    *slot = t;
    return WEIR_OK;
}

static weir_status place_all(weir_model *m, const weir_log *log, weir_err *err)
{
    int64_t ignored = 0;
    const char *example = NULL;
    for (int64_t i = 0; i < m->ck.n_tensors; i++) {
        const weir_tensor *t = &m->ck.tensor[i];
        int64_t layer;
        const weir_name *e = weir_name_find(m->layout, t->name, &layer);
        if (e) {
            WEIR_TRY(place(m, t, e, layer, err));
        } else if (is_ignored(m->layout, t->name)) {
            ignored++;
            example = t->name;
        } else {
            char msg[128];
            snprintf(msg, sizeof msg, "surplus: a %s model has no such tensor", m->cfg.model_type);
            return fail(t, err, WEIR_E_FORMAT, msg);
        }
    }
    if (ignored)
        weir_logf(log, WEIR_LOG_INFO, "%lld stored buffers are no weights and are not read (%s)", (long long)ignored,
                  example);
    return WEIR_OK;
}

/* --- the head */

/* Decides which table is the head. Returns a stored head that is not to be used, or NULL. */
static const weir_tensor *tie_head(weir_model *m)
{
    const weir_tensor **head = &m->slot[WEIR_ROLE_HEAD], *stored = *head;
    bool flag = !m->ck.is_gguf && m->cfg.v[WEIR_CFG_TIE] > 0; /* GGUF has no flag: what is stored decides */
    m->tied = flag || !stored;
    if (!flag || !stored)
        return NULL;
    *head = NULL;
    return stored;
}

static void log_head(const weir_model *m, const weir_tensor *unused, const weir_log *log)
{
    if (unused)
        weir_logf(log, WEIR_LOG_WARN,
                  "%s is stored, but tie_word_embeddings says that the token table is the head: it is not read",
                  unused->name);
    else if (m->tied && !m->ck.is_gguf && !(m->cfg.v[WEIR_CFG_TIE] > 0))
        weir_logf(log, WEIR_LOG_WARN,
                  "tie_word_embeddings is false, but no head is stored: the token table is taken as the head");
}

/* --- missing and misshapen */

static weir_status missing(const weir_model *m, const weir_name *e, int64_t layer, const char *msg, weir_err *err)
{
    char name[160];
    spell(name, sizeof name, m, e, layer);
    weir_fail(err, WEIR_E_FORMAT, "%s", msg);
    weir_err_where(err, m->info.path, name, -1);
    return WEIR_E_FORMAT;
}

/* An optional tensor is stored in every layer or in none. */
static weir_status check_present(const weir_model *m, const weir_name *e, weir_err *err)
{
    bool layered = weir_role_in_layer(e->role);
    int64_t first = layered ? 0 : -1, last = layered ? m->spec.L : 0, found = 0;
    for (int64_t l = first; l < last; l++)
        found += weir_slot(m, l, e->role) != NULL;
    if (found == last - first || (e->when == WEIR_IF_STORED && !found) ||
        (e->when != WEIR_IF_STORED && !wanted(m, e->when)))
        return WEIR_OK;
    for (int64_t l = first; l < last; l++)
        if (!weir_slot(m, l, e->role))
            return missing(
                m, e, l, found ? "missing in this layer, although another layer has it" : "missing: the model needs it",
                err);
    return WEIR_OK;
}

static void print_shape(char *buf, size_t n, int rank, const int64_t *shape)
{
    size_t used = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (used < n)
        snprintf(buf + used, n - used, "]");
}

static weir_status check_tensor(const weir_model *m, const weir_tensor *t, weir_role r, weir_err *err)
{
    const weir_shape want = weir_role_shape(r, &m->spec, m->layout->k_major);
    char msg[400], got[100], expected[100];
    if (t->dtype == WEIR_OTHER)
        return fail(t, err, WEIR_E_UNSUPPORTED,
                    "weights of this type are not supported; weir has F32, F16, BF16 and GGUF's Q types");
    if (t->rank == want.rank && t->shape[0] == want.n[0] && (want.rank == 1 || t->shape[1] == want.n[1]))
        return WEIR_OK;
    print_shape(got, sizeof got, t->rank, t->shape);
    print_shape(expected, sizeof expected, want.rank, want.n);
    snprintf(msg, sizeof msg, "the shape is %s, but [%s%s%s] = %s was expected", got, want.letters[0],
             want.rank > 1 ? ", " : "", want.letters[1], expected);
    return fail(t, err, WEIR_E_SHAPE, msg);
}

static weir_status check_all(weir_model *m, weir_err *err)
{
    for (const weir_name *e = m->layout->name; e->role != WEIR_ROLE_END; e++) {
        if (e->role != WEIR_ROLE_HEAD)
            WEIR_TRY(check_present(m, e, err));
        bool layered = weir_role_in_layer(e->role);
        for (int64_t l = layered ? 0 : -1; l < (layered ? m->spec.L : 0); l++)
            if (weir_slot(m, l, e->role))
                WEIR_TRY(check_tensor(m, weir_slot(m, l, e->role), e->role, err));
    }
    return WEIR_OK;
}

/* The tensors in use, in file order. */
static weir_status list_used(weir_model *m, weir_err *err)
{
    m->used = weir_arena_alloc(&m->arena, (size_t)m->ck.n_tensors, sizeof *m->used);
    uint8_t *use = weir_arena_alloc(&m->arena, (size_t)m->ck.n_tensors, 1);
    if (!m->used || !use)
        return weir_nomem(err, "the table of tensors");
    for (int64_t i = 0; i < (m->spec.L + 1) * WEIR_ROLE_COUNT; i++)
        if (m->slot[i])
            use[m->slot[i] - m->ck.tensor] = 1;
    for (int64_t i = 0; i < m->ck.n_tensors; i++)
        if (use[i])
            m->used[m->n_used++] = &m->ck.tensor[i];
    return WEIR_OK;
}

weir_status weir_bind(weir_model *m, const weir_log *log, weir_err *err)
{
    m->slot = weir_arena_alloc(&m->arena, (size_t)(m->spec.L + 1) * WEIR_ROLE_COUNT, sizeof *m->slot);
    if (!m->slot)
        return weir_nomem(err, "the table of tensors");
    WEIR_TRY(place_all(m, log, err));
    const weir_tensor *embed = weir_slot(m, -1, WEIR_ROLE_EMBED);
    if (!m->spec.V && embed)
        m->spec.V = embed->shape[0];
    const weir_tensor *unused = tie_head(m);
    WEIR_TRY(check_all(m, err));
    log_head(m, unused, log);
    return list_used(m, err);
}
