/* hooks/points.h: the table of hook points (points.c). */
#ifndef WEIR_HOOKS_POINTS_H
#define WEIR_HOOKS_POINTS_H

#include <weir/hook.h>

/* TransformerLens's name of a site, in a block the part behind "blocks.L.". */
const char *weir_site_name(weir_site site);

#endif
