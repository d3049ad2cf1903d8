/* run/listen.h: what the forward pass needs of hook points and hooks. lib/hooks defines it; the run only calls it, so
 * that headers depend one way (hooks on run). */
#ifndef WEIR_LISTEN_H
#define WEIR_LISTEN_H

#include <weir/run.h>

#include "../model/spec.h"

/* Where the points of a model stand in its list: layer l's point of a site is point[first + l * stride + at[site]];
 * outside the blocks it is point[at[site]]; at[site] = -1: the model has no such point. */
typedef struct weir_point_map {
    const weir_point *point;
    int64_t n, first, stride; /* n: of the forward pass */
    int64_t all;              /* with those of gradients: point[n + i] is that of point[i] */
    int at[WEIR_SITE_COUNT];
} weir_point_map;
WEIR_CHECKED weir_status weir_point_map_init(weir_point_map *map, const weir_model *m, weir_err *err);

static inline bool weir_site_in_block(weir_site s)
{
    return s >= WEIR_SITE_RESID_PRE && s <= WEIR_SITE_RESID_POST;
}

/* A hook on a run. */
typedef struct weir_attached {
    const weir_hook_class *class;
    void *self;
    bool owned;    /* destroyed with the run */
    uint8_t *want; /* [all points] what it asked for, weir_want */
    int64_t fired;
    bool excused; /* it may end without having fired */
} weir_attached;

typedef struct weir_listeners {
    weir_attached *hook;
    int n;
    uint8_t *want; /* [all points] the strongest want of any hook: WEIR_NONE when nobody listens */
    bool backward; /* the run has a way back */
    bool enough;   /* a hook said so at the end of a pass */
} weir_listeners;

/* Asks the hook for its wants and appends it. On failure an owned self is destroyed. */
WEIR_CHECKED weir_status weir_listeners_add(weir_listeners *ls, const weir_point_map *map, const weir_hook_class *c,
                                            void *self, bool owned, weir_err *err);
void weir_listeners_free(weir_listeners *ls);

/* Gives the value to every hook that wants its point, in order of attaching. i: index of v->point. */
WEIR_CHECKED weir_status weir_listeners_fire(weir_listeners *ls, int64_t i, const weir_value *v, weir_err *err);
/* v is the gradient at point i: the hooks that want it are given it, and those that wrote to the point take it to what
 * they found, in the reverse order of attaching. of: index of the gradient's point; written: the hooks heard the point in
 * this pass. */
WEIR_CHECKED weir_status weir_listeners_fire_back(weir_listeners *ls, int64_t i, const weir_point *of, int64_t i_of,
                                                  const weir_value *v, bool written, weir_err *err);
/* Lets the hooks declare datasets of their own in d. */
WEIR_CHECKED weir_status weir_listeners_declare(weir_listeners *ls, struct weir_dump *d, weir_err *err);
WEIR_CHECKED weir_status weir_listeners_begin(weir_listeners *ls, const weir_rows *rows, weir_err *err);
/* A hook's WEIR_STOP is noted in `enough`; the end of a pass is not stopped. */
WEIR_CHECKED weir_status weir_listeners_end(weir_listeners *ls, const weir_rows *rows, weir_err *err);

#endif
