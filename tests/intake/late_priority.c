/* SPDX-License-Identifier: MIT */
/* A jobtap plugin that takes its time to say a job's priority, as one that asks an
 * accounting database may: nobody has any until `job-manager.late-priority.say`
 * gives it {"id": JOBID, "priority": N}.
 */
#include <flux/core.h>
#include <flux/jobtap.h>

static int later (flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args,
                  void *arg)
{
    return flux_jobtap_priority_unavail (p, args);
}

static void say (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg, void *arg)
{
    flux_jobid_t id;
    int priority;

    if (flux_request_unpack (msg, NULL, "{s:I s:i}", "id", &id,
                             "priority", &priority) < 0
        || flux_jobtap_reprioritize_job (arg, id, (unsigned int) priority) < 0)
        flux_respond_error (h, msg, errno, "cannot prioritize");
    else
        flux_respond (h, msg, NULL);
}

static const struct flux_plugin_handler handlers[] = {
    { "job.state.priority", later, NULL },
    { "job.priority.get", later, NULL },
    { 0 },
};

int flux_plugin_init (flux_plugin_t *p)
{
    if (flux_plugin_register (p, "late-priority", handlers) < 0
        || flux_jobtap_service_register (p, "say", say, p) < 0)
        return -1;
    return 0;
}
