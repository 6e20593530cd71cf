/* A libfabric with one provider, verbs, that does not work: BROKEN=unfit offers no reliable endpoints, BROKEN=refuses
 * offers them and opens none. */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

struct fi_info *fi_dupinfo(const struct fi_info *from)
{
    struct fi_info *info = calloc(1, sizeof *info);
    info->tx_attr = calloc(1, sizeof *info->tx_attr);
    info->rx_attr = calloc(1, sizeof *info->rx_attr);
    info->ep_attr = calloc(1, sizeof *info->ep_attr);
    info->domain_attr = calloc(1, sizeof *info->domain_attr);
    info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
    if (from) {
        *info->ep_attr = *from->ep_attr;
        *info->domain_attr = *from->domain_attr;
        if (from->domain_attr->name)
            info->domain_attr->name = strdup(from->domain_attr->name);
        if (from->fabric_attr->prov_name)
            info->fabric_attr->prov_name = strdup(from->fabric_attr->prov_name);
    }
    return info;
}

void fi_freeinfo(struct fi_info *info)
{
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr->name);
    free(info->domain_attr);
    free(info->fabric_attr->prov_name);
    free(info->fabric_attr);
    free(info);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **found)
{
    const char *how = getenv("BROKEN");
    (void)version, (void)node, (void)service, (void)flags;
    if (strcmp(hints->fabric_attr->prov_name, "verbs") != 0)
        return -FI_ENODATA;
    if (strcmp(how, "unfit") == 0 && hints->ep_attr->type == FI_EP_RDM)
        return -FI_ENODATA;
    *found = fi_dupinfo(hints);
    (*found)->domain_attr->name = strdup("mlx5_7");
    (*found)->ep_attr->max_msg_size = 1 << 30;
    return 0;
}

int fi_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context)
{
    (void)attributes, (void)fabric, (void)context;
    return -FI_EIO;
}

const char *fi_strerror(int code)
{
    return code == FI_EIO ? "Input/output error" : "No data available";
}

uint32_t fi_version(void)
{
    return FI_VERSION(1, 17);
}
