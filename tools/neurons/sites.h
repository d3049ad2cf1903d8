/* neurons/sites.h: what --site names: short names of hook points, for a run and for a dump alike, so that a result says
 * the same of both. */
#ifndef WEIR_NEURONS_SITES_H
#define WEIR_NEURONS_SITES_H

#include <stdbool.h>

typedef struct weir_short_site {
    const char *name;  /* as asked for, with underscores */
    const char *point; /* the hook point in a block: "mlp.hook_post" */
    const char *kept;  /* as results have it */
} weir_short_site;

/* NULL: it is no short name. */
const weir_short_site *weir_short_site_of(const char *name);

/* Does it name units, which --neurons does: "hook_post[3]", "L6N421", "L6H3"? */
bool weir_site_has_units(const char *name);

/* The next of a list with commas; those in braces and brackets do not separate. The text is cut up, and its hyphens
 * become underscores. NULL: there are no more. */
char *weir_next_site(char **rest);

#endif
