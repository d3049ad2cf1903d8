/* The hook classes of hooks/: the Makefile generates the table from the files that exist. */
#include <string.h>

#include <weir/hook.h>

extern const weir_hook_class *const weir_hook_table[];
extern const int weir_n_hooks;

int weir_hook_class_count(void)
{
    return weir_n_hooks;
}

const weir_hook_class *weir_hook_class_at(int i)
{
    return i >= 0 && i < weir_n_hooks ? weir_hook_table[i] : NULL;
}

const weir_hook_class *weir_hook_class_find(const char *name)
{
    for (int i = 0; i < weir_n_hooks; i++)
        if (strcmp(weir_hook_table[i]->name, name) == 0)
            return weir_hook_table[i];
    return NULL;
}
