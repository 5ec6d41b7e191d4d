#include "library.h"

#include <dlfcn.h>
#include <string.h>

void *library_open(int n, const char *const *names)
{
    void *library = NULL;
    for (int i = 0; i < n && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

bool library_find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol;
}
