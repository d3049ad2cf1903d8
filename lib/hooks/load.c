/* Hooks from shared objects. */
#include <ctype.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/mem.h"
#include "../run/listen.h"

/* "./my-hook.so" holds weir_hook_my_hook. */
static char *object_name(const char *path)
{
    static const char prefix[] = "weir_hook_";
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t n = strcspn(file, "."), at = sizeof prefix - 1;
    char *name = weir_calloc(at + n + 1, 1);
    if (!name)
        return NULL;
    memcpy(name, prefix, at);
    for (size_t i = 0; i < n; i++)
        name[at + i] = isalnum((unsigned char)file[i]) ? file[i] : '_';
    return name;
}

/* dlopen looks for a name without a slash in the system's directories; here it is a file like any other. */
static void *open_object(const char *path, weir_err *err)
{
    weir_buf text = {0};
    struct stat st;
    void *handle = NULL;
    if (weir_buf_printf(&text, "%s%s", strchr(path, '/') ? "" : "./", path))
        weir_nomem(err, "a hook");
    else if (!stat(text.p, &st) && !S_ISREG(st.st_mode)) /* it would wait for the writer of a pipe */
        weir_fail(err, WEIR_E_HOOK, "the hook cannot be loaded: not a regular file");
    else if (!(handle = dlopen(text.p, RTLD_NOW | RTLD_LOCAL)))
        weir_fail(err, WEIR_E_HOOK, "the hook cannot be loaded: %s", dlerror());
    weir_buf_free(&text);
    return handle;
}

/* A class of another ABI may have its fields elsewhere: only struct_size and abi, which stand first, are read before
 * these are known to agree. */
static weir_status check(const weir_hook_class *c, weir_err *err)
{
    if (c->abi != WEIR_HOOK_ABI)
        return weir_fail(err, WEIR_E_HOOK,
                         "the hook was built for hook ABI %u, this is %d: compile it again with this weir's headers",
                         c->abi, WEIR_HOOK_ABI);
    if (c->struct_size != sizeof *c)
        return weir_fail(err, WEIR_E_HOOK,
                         "the hook's weir_hook_class has %zu bytes, here it has %zu: compile it again with this "
                         "weir's headers",
                         c->struct_size, sizeof *c);
    const char *missing = !c->name || !*c->name ? "name"
                          : !c->create          ? "create"
                          : !c->wants           ? "wants"
                          : !c->on_value        ? "on_value"
                                                : NULL;
    return missing ? weir_fail(err, WEIR_E_HOOK, "the hook's class has no %s", missing) : WEIR_OK;
}

static weir_status find(const weir_hook_class **out, const char *path, weir_err *err)
{
    void *handle = open_object(path, err);
    if (!handle)
        return err ? err->code : WEIR_E_HOOK;
    char *name = object_name(path);
    const weir_hook_class *c = name ? dlsym(handle, name) : NULL;
    weir_status st = WEIR_OK;
    if (!name)
        st = weir_nomem(err, "a hook");
    else if (!c)
        st = weir_fail(err, WEIR_E_HOOK,
                       "there is no object %s in it: a hook is called after its file (see hooks/template.c)", name);
    else
        st = check(c, err);
    weir_free(name);
    if (st) /* nobody holds anything of it */
        dlclose(handle);
    else
        *out = c;
    return st;
}

weir_status weir_hook_class_load(const weir_hook_class **out, const char *path, weir_err *err)
{
    *out = NULL;
    weir_status st = find(out, path, err);
    if (st)
        weir_err_where(err, path, NULL, -1);
    return st;
}
