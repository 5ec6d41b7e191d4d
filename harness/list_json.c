/* The topics of `kbench list` for programs. */
#include <stdlib.h>

#include "base.h"
#include "list.h"
#include "row.h"
#include "sweep_files.h"

cJSON *list_ops_json(const struct material *m)
{
    cJSON *all = cJSON_CreateArray();
    (void)m;
    for (int i = 0; ops[i]; i++) {
        cJSON *op = cJSON_CreateObject(), *dims = cJSON_CreateArray(), *tensors = cJSON_CreateArray();
        cJSON_AddStringToObject(op, "name", ops[i]->name);
        cJSON_AddStringToObject(op, "note", ops[i]->note ? ops[i]->note : "");
        for (int d = 0; d < op_dims(ops[i]); d++) {
            const struct dim *dim = &ops[i]->dim[d];
            cJSON *one = cJSON_CreateObject();
            cJSON_AddStringToObject(one, "name", dim->name);
            cJSON_AddStringToObject(one, "unit", dim->unit ? dim->unit : "");
            cJSON_AddNumberToObject(one, "default", (double)dim->dflt);
            cJSON_AddNumberToObject(one, "min", (double)dim->min);
            cJSON_AddNumberToObject(one, "max", (double)dim->max);
            cJSON_AddBoolToObject(one, "live", dim->live);
            cJSON_AddBoolToObject(one, "label", dim->label);
            if (dim->names) {
                cJSON *words = cJSON_AddArrayToObject(one, "names");
                for (int v = 0; dim->names[v]; v++) cJSON_AddItemToArray(words, cJSON_CreateString(dim->names[v]));
            }
            cJSON_AddNumberToObject(one, "ideal_exponent", dim->ideal);
            cJSON_AddItemToArray(dims, one);
        }
        for (int t = 0; t < op_tensors(ops[i]); t++) {
            const struct tensor *tensor = &ops[i]->tensor[t];
            cJSON *one = cJSON_CreateObject();
            cJSON_AddStringToObject(one, "name", tensor->name);
            cJSON_AddStringToObject(one, "role", list_role(tensor->role));
            cJSON_AddStringToObject(one, "dtype", list_dtype(tensor->dtype));
            cJSON_AddStringToObject(one, "shape", tensor->shape ? tensor->shape : "");
            cJSON_AddItemToArray(tensors, one);
        }
        cJSON_AddItemToObject(op, "dims", dims);
        cJSON_AddItemToObject(op, "tensors", tensors);
        cJSON_AddItemToArray(all, op);
    }
    return all;
}

static cJSON *kernel_json(const struct entry *e)
{
    char   sm[SM_BYTES], hash[CODE_BYTES];
    cJSON *one = cJSON_CreateObject(), *alone, *growth, *tunables;
    cJSON_AddStringToObject(one, "name", e->name);
    cJSON_AddStringToObject(one, "op", e->kernel->op);
    cJSON_AddStringToObject(one, "engine", list_engine(e->kernel->engine));
    cJSON_AddStringToObject(one, "note", e->kernel->note ? e->kernel->note : "");
    cJSON_AddStringToObject(one, "sm", e->sms ? e->sms : "");
    cJSON_AddStringToObject(one, "code_hash", e->hash ? e->hash : "");
    alone = cJSON_AddObjectToObject(one, "code_hash_of_sm");
    for (int i = 0; registry_code(e, i, sm, hash); i++) cJSON_AddStringToObject(alone, sm, hash);
    cJSON_AddBoolToObject(one, "probe", (e->kernel->promises & PROBE) != 0);
    cJSON_AddBoolToObject(one, "oracle", (e->kernel->promises & ORACLE) != 0);
    cJSON_AddBoolToObject(one, "clean", (e->kernel->promises & CLEAN) != 0);
    growth = cJSON_AddObjectToObject(one, "growth");
    for (int i = 0; i < MAX_DIMS && e->kernel->growth[i].dim; i++)
        cJSON_AddNumberToObject(growth, e->kernel->growth[i].dim, e->kernel->growth[i].exponent);
    tunables = cJSON_AddArrayToObject(one, "tunables");
    for (int t = 0; t < kernel_tunables(e->kernel); t++) {
        const struct tunable *tunable = &e->kernel->tunable[t];
        cJSON *item = cJSON_CreateObject(), *offered;
        cJSON_AddStringToObject(item, "name", tunable->name);
        cJSON_AddNumberToObject(item, "min", tunable->min);
        cJSON_AddNumberToObject(item, "max", tunable->max);
        offered = cJSON_AddArrayToObject(item, "values");
        for (int v = 0; v < COUNT(tunable->value) && (!v || tunable->value[v]); v++)
            cJSON_AddItemToArray(offered, cJSON_CreateNumber(tunable->value[v]));
        cJSON_AddItemToArray(tunables, item);
    }
    return one;
}

cJSON *list_kernels_json(const struct material *m)
{
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < m->registry->n; i++) cJSON_AddItemToArray(all, kernel_json(&m->registry->entry[i]));
    return all;
}

cJSON *list_devices_json(const struct material *m)
{
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < m->n_machines; i++) {
        const struct machine *machine = &m->machine[i];
        bool   usable = !(m->why_not && m->why_not[i]);
        char   word[32];
        cJSON *one = cJSON_CreateObject();
        list_device(machine, word, sizeof word);
        cJSON_AddStringToObject(one, "device", word);
        cJSON_AddBoolToObject(one, "usable", usable);
        if (!usable) cJSON_AddStringToObject(one, "why_not", m->why_not[i]);
        if (usable) {
            cJSON_AddStringToObject(one, "name", machine->name);
            cJSON_AddStringToObject(one, "uuid", machine->uuid);
            cJSON_AddStringToObject(one, "driver", machine->driver);
            cJSON_AddStringToObject(one, "toolkit", machine->toolkit);
            cJSON_AddStringToObject(one, "features", machine->features);
            cJSON_AddNumberToObject(one, "sm", machine->facts.sm);
            cJSON_AddNumberToObject(one, "sm_count", machine->facts.sm_count);
            cJSON_AddNumberToObject(one, "l2_bytes", (double)machine->facts.l2_bytes);
            cJSON_AddNumberToObject(one, "memory_bytes", (double)machine->facts.memory_bytes);
        }
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

cJSON *list_sweeps_json(const struct material *m)
{
    cJSON *all = cJSON_CreateArray();
    char **names, note[1024];
    int    n = sweep_names(&names);
    (void)m;
    for (int i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();
        list_sweep_note(names[i], note, sizeof note);
        cJSON_AddStringToObject(one, "name", names[i]);
        cJSON_AddStringToObject(one, "note", note);
        cJSON_AddItemToArray(all, one);
        free(names[i]);
    }
    free(names);
    return all;
}

cJSON *list_columns_json(const struct material *m)
{
    cJSON *all = cJSON_CreateArray();
    struct file_columns columns = file_columns_of(m->file);
    for (int i = 0; i < columns.n; i++) {
        const struct file_column *c = &columns.column[i];
        bool   dims = c->kind == FILE_DIMS;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", dims ? "<dimensions>" : c->name);
        cJSON_AddStringToObject(one, "unit", dims ? "" : c->unit);
        cJSON_AddStringToObject(one, "help", dims ? list_dims_help : c->help);
        cJSON_AddItemToArray(all, one);
    }
    return all;
}
