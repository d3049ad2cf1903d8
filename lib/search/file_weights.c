/* search/file_weights.c: tokens read from the weights, in a file: in the group of their table, for each side and end,
 * SIDE_END_id and SIDE_END_score [neurons, n]. */
#include <inttypes.h>
#include <math.h>

#include "search/file.h"
#include "search/weights.h"

static const char *const end_names[2] = {"neg", "pos"};

static void name_list(char out[WEIR_ARRAY_NAMES], const char *group, weir_weight_side side, bool positive,
                      const char *what)
{
    static const char *const side_names[WEIR_SIDES] = {"in", "up", "out"};
    char name[32];
    snprintf(name, sizeof name, "%s_%s_%s", side_names[side], end_names[positive], what);
    weir_file_path(out, group, name);
}

/* --- writing */

static weir_status put_list(weir_arrays_out *w, const char *group, const weir_weights *from, int t,
                            weir_weight_side side, bool positive, weir_err *err)
{
    const weir_weight_token *list = weir_weights_list(from, t, side, positive);
    const int64_t dim[2] = {from->table[t].neurons, from->n}, n = dim[0] * dim[1];
    char name[WEIR_ARRAY_NAMES];
    int32_t *id = weir_calloc((size_t)n, sizeof *id);
    float *score = weir_calloc((size_t)n, sizeof *score);
    weir_status st = id && score ? WEIR_OK : weir_nomem(err, "the tokens of the weights");
    for (int64_t i = 0; i < n && !st; i++) {
        id[i] = list[i].id;
        score[i] = list[i].id < 0 ? NAN : list[i].score;
    }
    name_list(name, group, side, positive, "id");
    if (!st)
        st = weir_arrays_put(w, name, WEIR_ARRAY_I32, 2, dim, id, err);
    name_list(name, group, side, positive, "score");
    if (!st)
        st = weir_arrays_put(w, name, WEIR_ARRAY_F32, 2, dim, score, err);
    weir_free(id);
    weir_free(score);
    return st;
}

weir_status weir_file_put_weights(weir_arrays_out *w, const weir_neurons *s, int t, const char *group, weir_err *err)
{
    for (int side = 0; s->weights && side < WEIR_SIDES; side++)
        for (int end = 1; end >= 0; end--)
            if (weir_weights_list(s->weights, t, (weir_weight_side)side, end))
                WEIR_TRY(put_list(w, group, s->weights, t, (weir_weight_side)side, end, err));
    return WEIR_OK;
}

/* --- reading */

static weir_status take_list(weir_arrays_in *r, const char *group, const weir_weights *to, int t, weir_weight_side side,
                             bool positive, int32_t *id, float *score, weir_err *err)
{
    weir_weight_token *list = weir_weights_list(to, t, side, positive);
    const int64_t dim[2] = {to->table[t].neurons, to->n};
    char name[WEIR_ARRAY_NAMES];
    name_list(name, group, side, positive, "id");
    WEIR_TRY(weir_arrays_get(r, name, WEIR_ARRAY_I32, 2, dim, id, err));
    name_list(name, group, side, positive, "score");
    WEIR_TRY(weir_arrays_get(r, name, WEIR_ARRAY_F32, 2, dim, score, err));
    for (int64_t i = 0; i < dim[0] * dim[1]; i++)
        list[i] = (weir_weight_token){id[i], id[i] < 0 ? 0 : score[i]};
    return WEIR_OK;
}

static weir_status get_side(weir_arrays_in *r, weir_neurons *s, int t, const char *group, weir_weight_side side,
                            weir_err *err)
{
    char name[WEIR_ARRAY_NAMES];
    int64_t dim[2];
    name_list(name, group, side, true, "id");
    if (!weir_arrays_has(r, name))
        return WEIR_OK;
    WEIR_TRY(weir_arrays_shape(r, name, WEIR_ARRAY_I32, 2, dim, err));
    if (dim[0] != s->table[t].n || dim[1] < 1 || dim[1] > WEIR_WEIGHTS_MOST || (s->weights && dim[1] != s->weights->n))
        return weir_arrays_bad(r, name, err, "has the shape %" PRId64 ", %" PRId64, dim[0], dim[1]);
    if (!s->weights)
        WEIR_TRY(weir_weights_new(&s->weights, s, dim[1], err));
    WEIR_TRY(weir_weights_room(s->weights, t, side, err));
    int32_t *id = weir_calloc((size_t)(dim[0] * dim[1]), sizeof *id);
    float *score = weir_calloc((size_t)(dim[0] * dim[1]), sizeof *score);
    weir_status st = id && score ? WEIR_OK : weir_nomem(err, "the tokens of the weights");
    for (int end = 0; end < 2 && !st; end++)
        st = take_list(r, group, s->weights, t, side, end, id, score, err);
    weir_free(id);
    weir_free(score);
    return st;
}

weir_status weir_file_get_weights(weir_arrays_in *r, weir_neurons *s, int t, const char *group, weir_err *err)
{
    for (int side = 0; side < WEIR_SIDES; side++)
        WEIR_TRY(get_side(r, s, t, group, (weir_weight_side)side, err));
    return WEIR_OK;
}
