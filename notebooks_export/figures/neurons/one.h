/* figures/neurons/one.h: a weir-neurons file as its notebook shows it: one neuron that is chosen, and all of them. */
#ifndef WEIR_NOTEBOOK_NEURONS_H
#define WEIR_NOTEBOOK_NEURONS_H

#include "export/kind.h"

/* What is known of each neuron, by the names that the parameter `quantity` has; then the density. */
enum {
    WEIR_NB_MEAN,
    WEIR_NB_SD,
    WEIR_NB_SKEW,
    WEIR_NB_KURTOSIS,
    WEIR_NB_MIN,
    WEIR_NB_MAX,
    WEIR_NB_QUANTITIES,
    WEIR_NB_DENSITY = WEIR_NB_QUANTITIES,
    WEIR_NB_KNOWN
};
extern const char *const weir_nb_quantity_name[WEIR_NB_QUANTITIES];

typedef struct weir_nb_neurons {
    weir_neurons *s;
    int tables;
    char (*group)[WEIR_ARRAY_NAMES]; /* [tables] names of the groups in the file */
    char **label;                    /* [tables] short: "L6 post" */
    int64_t *begin;                  /* [tables + 1] where a table's neurons begin among all */
    double *known[WEIR_NB_KNOWN];    /* [neurons] each */
    int table, named;                /* the chosen neuron's; named: -1, or which it is */
    int64_t row;                     /* in the table */
    int quantity;
    int64_t places, before, after, bins, points, min_count; /* parameters */
} weir_nb_neurons;

static inline int64_t weir_nb_neurons_all(const weir_nb_neurons *v)
{
    return v->begin[v->tables];
}

static inline int64_t weir_nb_neurons_unit(const weir_nb_neurons *v, int table, int64_t row)
{
    const weir_neurons_table *t = weir_neurons_table_at(v->s, table);
    return t->units ? t->units[row] : row;
}

/* --- places.c: figures of places in the text; they return an exit code */

int weir_nb_neurons_top(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_bottom(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_samples(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
/* The list that `top` shows, that of the largest magnitudes where the file has it; -1: neither. */
int weir_nb_neurons_best(const weir_nb_neurons *v);
/* Places of a list, at most `places`; to be freed. NULL: out of memory. */
weir_neuron_hit *weir_nb_neurons_list(const weir_nb_neurons *v, int table, int64_t row, int list, int64_t *n);
/* A token, in a box of its own. */
void weir_nb_neurons_box(const weir_nb_neurons *v, FILE *out, int32_t id);
/* A line that says what is not in the file, and what records it. */
int weir_nb_neurons_missing(FILE *out, const char *what, const char *how);

/* --- one.c: figures of the chosen neuron */

int weir_nb_neurons_moments(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_histogram(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_weights(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_token_means(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_correlated(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);

/* --- all.c: figures of all neurons */

int weir_nb_neurons_scatter(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_highest(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_layers(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);
int weir_nb_neurons_densities(weir_nb *nb, void *data, FILE *out, weir_jsonw *numbers);

#endif
