#include "fakes/kube/printing/table_printer.h"

#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

TEST(HumanDurationTest, IsWhatKubectlShows) {
  constexpr int64_t kHour = 3600, kDay = 86400;
  const std::vector<std::pair<int64_t, std::string>> cases = {{-5, "<invalid>"},
                                                              {-1, "0s"},
                                                              {0, "0s"},
                                                              {119, "119s"},
                                                              {120, "2m"},
                                                              {200, "3m20s"},
                                                              {600, "10m"},
                                                              {3 * kHour - 1, "179m"},
                                                              {3 * kHour, "3h"},
                                                              {4 * kHour + 300, "4h5m"},
                                                              {8 * kHour, "8h"},
                                                              {47 * kHour, "47h"},
                                                              {2 * kDay, "2d"},
                                                              {2 * kDay + 3 * kHour, "2d3h"},
                                                              {8 * kDay, "8d"},
                                                              {729 * kDay, "729d"},
                                                              {730 * kDay, "2y"},
                                                              {731 * kDay, "2y1d"},
                                                              {9 * 365 * kDay, "9y"}};
  for (const auto& [seconds, text] : cases) EXPECT_EQ(HumanDuration(seconds), text) << seconds;
}

class TablePrinterTest : public ClusterTest {
 protected:
  // The rows as kubectl would print them: "NAME=web READY=2/2 ...", of priority 0, or all.
  std::string Print(const char* kind, const std::string& ns, bool wide = false, const json& custom = nullptr) {
    std::string out;
    const GroupKind group_kind = ParseGroupKind(kind);
    const json columns = TableColumns(group_kind, custom);
    for (const ObjectRef& object : api().List(kind, ns)) {
      const json cells = TableCells(group_kind, custom, *object, api().UnixNow());
      EXPECT_EQ(cells.size(), columns.size()) << kind;
      for (size_t i = 0; i < columns.size(); ++i) {
        if (!wide && columns[i]["priority"] != 0) continue;
        out += columns[i]["name"].get<std::string>() + "=" +
               (cells[i].is_string() ? cells[i].get<std::string>() : cells[i].dump()) +
               (i + 1 < columns.size() ? "|" : "");
      }
      out += "\n";
    }
    return out;
  }
};

TEST_F(TablePrinterTest, RowsOfTheWorldsKinds) {
  ApplyText(kWeb);
  Settle();
  kernel_.RunUntil(Time{} + 200s);
  EXPECT_THAT(Print("Deployment", "sample"),
              testing::StartsWith("Name=web|Ready=2/2|Up-to-date=2|Available=2|Age=3m20s|"));
  EXPECT_THAT(Print("Deployment", "sample", true), testing::HasSubstr("Containers=web|Images=x|Selector=app=web"));
  EXPECT_THAT(Print("ReplicaSet", "sample"), testing::HasSubstr("Desired=2|Current=2|Ready=2|Age=3m"));
  EXPECT_THAT(Print("Pod", "sample"), testing::HasSubstr("|Ready=1/1|Status=Running|Restarts=0|Age=3m"));
  EXPECT_THAT(Print("Pod", "sample", true),
              testing::ContainsRegex("IP=10.1.[0-9.]+.Node=node[12].Nominated Node=<none>"));
  EXPECT_THAT(Print("Service", "sample"),
              testing::ContainsRegex("Name=web.Type=LoadBalancer.Cluster-IP=10.96.[0-9.]+.External-IP=172.30.1.[0-9]+."
                                     "Port.s.=80:3[0-9]+/TCP.Age=3m20s"));
  EXPECT_THAT(Print("Endpoints", "sample"),
              testing::ContainsRegex("Endpoints=10.1.[0-9.]+:8080,10.1.[0-9.]+:8080.Age"));
  EXPECT_THAT(Print("EndpointSlice", "sample"), testing::HasSubstr("|AddressType=IPv4|Ports=8080|Endpoints=10.1."));
  EXPECT_THAT(Print("Node", ""), testing::HasSubstr("Name=node1|Status=Ready|Roles=<none>|Age=3m20s|"));
  EXPECT_THAT(Print("Namespace", ""), testing::HasSubstr("Name=sample|Status=Active|Age=3m20s\n"));
  EXPECT_EQ(Print("ServiceAccount", "sample"), "Name=default|Secrets=0|Age=3m20s\n");
}

TEST_F(TablePrinterTest, APodSaysWhyItIsNotRunning) {
  const auto status = [](const char* text) {
    json body = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", "p"}, {"namespace", "default"}}},
                 {"spec", json::parse(R"({"containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"}]})")},
                 {"status", json::parse(text)}};
    const auto object = kube::Object::FromJson(body);
    const json cells = TableCells({"Pod", ""}, nullptr, **object, 0);
    return cells[1].get<std::string>() + " " + cells[2].get<std::string>() + " " + cells[3].get<std::string>();
  };
  EXPECT_EQ(status(R"({"phase":"Pending"})"), "0/2 Pending 0");
  EXPECT_EQ(status(R"({"phase":"Pending","initContainerStatuses":[{"state":{"running":{}}}]})"), "0/2 Init:0/1 0");
  EXPECT_EQ(status(R"({"phase":"Running","containerStatuses":[{"ready":true,"state":{"running":{}}},
      {"restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})"),
            "1/2 CrashLoopBackOff 3");
  EXPECT_EQ(status(R"({"phase":"Failed","reason":"Evicted"})"), "0/2 Evicted 0");
}

TEST_F(TablePrinterTest, SidecarsAmongTheInitContainersAreCounted) {
  const auto ready = [](bool sidecar) {
    json body = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", "p"}, {"namespace", "default"}}},
                 {"spec", json::parse(R"({"containers":[{"name":"a"}],
                      "initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}]})")},
                 {"status", json::parse(R"({"phase":"Running","containerStatuses":[{"ready":true,
                      "state":{"running":{}}}],"initContainerStatuses":[{"name":"s","started":true,
                      "state":{"running":{}}}]})")}};
    body["status"]["initContainerStatuses"][0]["ready"] = sidecar;
    const auto object = kube::Object::FromJson(body);
    const json cells = TableCells({"Pod", ""}, nullptr, **object, 0);
    return cells[1].get<std::string>() + " " + cells[2].get<std::string>();
  };
  EXPECT_EQ(ready(true), "2/2 Running");
  EXPECT_EQ(ready(false), "1/2 Running");
}

TEST_F(TablePrinterTest, CustomResourcesHaveTheirDefinitionsColumns) {
  const json object = json::parse(R"({"apiVersion":"networking.istio.io/v1beta1","kind":"VirtualService",
      "metadata":{"name":"vs","namespace":"default","annotations":{"a.b/c":"x"}},
      "spec":{"hosts":["web"],"weight":3},"status":{"conditions":[{"type":"Other","status":"False"},
      {"type":"Ready","status":"True"}]}})");
  ASSERT_TRUE(api().Create(object).ok());
  const json columns = json::parse(R"([
      {"name":"Hosts","type":"string","jsonPath":".spec.hosts"},{"name":"Weight","type":"integer","jsonPath":".spec.weight"},
      {"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"},
      {"name":"Mark","type":"string","jsonPath":".metadata.annotations.a\\.b/c","priority":1},
      {"name":"None","type":"string","jsonPath":".spec.none"},
      {"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}])");
  kernel_.RunUntil(Time{} + 5s);
  const char* kind = "VirtualService.networking.istio.io";
  EXPECT_EQ(Print(kind, "default", true, columns),
            "Name=vs|Hosts=[\"web\"]|Weight=3|Ready=True|Mark=x|None=null|Age=5s\n");
  EXPECT_EQ(Print(kind, "default"), "Name=vs|Age=5s\n");
}

TEST_F(TablePrinterTest, SurprisingShapesGiveEmptyCells) {
  for (const char* kind : {"Pod", "Service", "Deployment", "ReplicaSet", "Endpoints", "EndpointSlice", "Node", "Secret",
                           "Event", "Lease", "Job", "CronJob", "Ingress", "RoleBinding", "HorizontalPodAutoscaler",
                           "PodDisruptionBudget", "CustomResourceDefinition", "DaemonSet", "StatefulSet"}) {
    const GroupKind group_kind = ParseGroupKind(kind);
    for (const char* part :
         {"1", "[1]", "{}", "null", R"({"ports":{"a":1},"containers":"x","conditions":[3],"rules":[[]]})"}) {
      json body = {{"apiVersion", "v1"}, {"kind", kind}, {"metadata", {{"name", "x"}}}};
      for (const char* field : {"spec", "status", "subsets", "data", "endpoints", "roleRef"})
        body[field] = json::parse(part);
      const auto object = kube::Object::FromJson(body);
      ASSERT_TRUE(object.ok());
      EXPECT_EQ(TableCells(group_kind, nullptr, **object, 0).size(), TableColumns(group_kind, nullptr).size()) << kind;
    }
  }
}

}  // namespace
}  // namespace wavetank::fakekube
