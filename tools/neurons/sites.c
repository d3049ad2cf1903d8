#include "sites.h"

#include <stddef.h>
#include <string.h>

static const weir_short_site sites[] = {
    {"resid_pre", "hook_resid_pre", "resid_pre"},
    {"resid_mid", "hook_resid_mid", "resid_mid"},
    {"resid_post", "hook_resid_post", "resid_post"},
    {"attn_out", "hook_attn_out", "attn_out"},
    {"mlp_out", "hook_mlp_out", "mlp_out"},
    {"ln1", "ln1.hook_out", "ln1"},
    {"ln2", "ln2.hook_out", "ln2"},
    {"pre", "mlp.hook_pre", "pre"},
    {"mlp_pre", "mlp.hook_pre", "pre"},
    {"gate", "mlp.hook_pre", "gate"},
    {"gate_act", "mlp.hook_pre", "gate-act"},
    {"up", "mlp.hook_pre_linear", "up"},
    {"post", "mlp.hook_post", "post"},
    {"mlp_post", "mlp.hook_post", "post"},
    {"q", "attn.hook_q", "q"},
    {"k", "attn.hook_k", "k"},
    {"v", "attn.hook_v", "v"},
    {"z", "attn.hook_z", "z"},
};

const weir_short_site *weir_short_site_of(const char *name)
{
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        if (strcmp(name, sites[i].name) == 0)
            return &sites[i];
    return NULL;
}

bool weir_site_has_units(const char *name)
{
    return strchr(name, '[') || ((*name == 'L' || *name == 'l') && name[1] >= '0' && name[1] <= '9');
}

char *weir_next_site(char **rest)
{
    char *site = *rest, *p = site;
    int depth = 0;
    if (!site)
        return NULL;
    for (; *p && (*p != ',' || depth > 0); p++) {
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        *p = *p == '-' ? '_' : *p;
    }
    *rest = *p ? p + 1 : NULL;
    *p = 0;
    return site;
}
