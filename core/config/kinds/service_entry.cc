#include "core/config/kinds/service_entry.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

void ReadMessage(ProtoJson& in, ServiceEntry& out) {
  using Location = ServiceEntry::Location;
  using Resolution = ServiceEntry::Resolution;
  in.Field("hosts", out.hosts);
  in.Field("addresses", out.addresses);
  in.Field("ports", out.ports);
  in.Enum("location", out.location,
          {{"MESH_EXTERNAL", Location::kMeshExternal}, {"MESH_INTERNAL", Location::kMeshInternal}});
  in.Enum("resolution", out.resolution,
          {{"NONE", Resolution::kNone},
           {"STATIC", Resolution::kStatic},
           {"DNS", Resolution::kDns},
           {"DNS_ROUND_ROBIN", Resolution::kDnsRoundRobin},
           {"DYNAMIC_DNS", Resolution::kDynamicDns}});
  in.Field("endpoints", out.endpoints);
  ReadSelector(in, "workloadSelector", "labels", out.workload_selector);
  in.Field("exportTo", out.export_to);
  in.Field("subjectAltNames", out.subject_alt_names);
}

}  // namespace wavetank::config
