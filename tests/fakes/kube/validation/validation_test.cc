#include "fakes/kube/validation/validation.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "fakes/kube/objects/api_error.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class ValidationTest : public ClusterTest {
 protected:
  // The refusal of a manifest; "" if it is taken. What is there already is replaced.
  std::string Refusal(const std::string& manifest) {
    const absl::StatusOr<std::vector<Manifest>> read = ParseManifests("t.yaml", manifest);
    EXPECT_TRUE(read.ok()) << read.status();
    WriteOptions options;
    options.validate = true;
    last_ = api().Apply(read->front().object, options).status();
    return std::string(Message(last_));
  }
  absl::Status last_;
};

std::string ServiceText(const std::string& spec) {
  return "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: " + spec + "\n";
}
std::string Deployment(const std::string& selector, const std::string& labels, const std::string& replicas = "1") {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec: {replicas: " +
         replicas + ", selector: " + selector + ", template: {metadata: {labels: " + labels +
         "}, spec: {containers: [{name: web, image: x}]}}}\n";
}

TEST_F(ValidationTest, ServicesAreRefusedInKubernetesWords) {
  EXPECT_EQ(Refusal(ServiceText("{}")), R"(Service "web" is invalid: spec.ports: Required value)");
  EXPECT_EQ(
      Refusal(ServiceText("{ports: [{port: 0}]}")),
      "Service \"web\" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, "
      "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]");
  EXPECT_EQ(Refusal(ServiceText("{ports: [{port: 80}, {port: 81, name: b}]}")),
            R"(Service "web" is invalid: spec.ports[0].name: Required value)");
  EXPECT_EQ(Refusal(ServiceText("{type: Magic, ports: [{port: 80}]}")),
            "Service \"web\" is invalid: spec.type: Unsupported value: \"Magic\": supported values: \"ClusterIP\", "
            "\"ExternalName\", \"LoadBalancer\", \"NodePort\"");
  EXPECT_EQ(Refusal(ServiceText("{ports: [{port: 80}]}")), "");
  EXPECT_EQ(
      Refusal(ServiceText("{clusterIP: 10.96.1.1, ports: [{port: 80}]}")),
      R"(Service "web" is invalid: spec.clusterIPs[0]: Invalid value: []string{"10.96.1.1"}: may not change once set)");
  EXPECT_EQ(
      Refusal(ServiceText("{clusterIP: None, ports: [{port: 80}]}")),
      R"(Service "web" is invalid: spec.clusterIPs[0]: Invalid value: []string{"None"}: may not change once set)");
  EXPECT_EQ(Refusal(ServiceText("{type: ExternalName, externalName: a.b}")), "");
  EXPECT_EQ(Refusal(ServiceText("{type: ExternalName, externalName: a.b, ports: [{port: 80}]}")), "");
}

TEST_F(ValidationTest, ARefusalHasACausePerField) {
  Refusal(ServiceText("{ports: [{port: 80}, {port: 81}]}"));
  const std::optional<ApiError> error = ApiErrorOf(last_);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, 422);
  EXPECT_EQ(error->reason, "Invalid");
  EXPECT_EQ(error->details["kind"], "Service");
  ASSERT_EQ(error->details["causes"].size(), 2u);
  EXPECT_EQ(error->details["causes"][1],
            json::parse(R"({"reason":"FieldValueRequired","field":"spec.ports[1].name","message":"Required value"})"));
}

TEST_F(ValidationTest, ADeploymentsSelectorFitsItsTemplateAndStays) {
  EXPECT_EQ(Refusal(Deployment("{matchLabels: {app: a}}", "{app: b}")),
            "Deployment.apps \"web\" is invalid: spec.template.metadata.labels: Invalid value: "
            "map[string]string{\"app\":\"b\"}: `selector` does not match template `labels`");
  EXPECT_EQ(Refusal(Deployment("{matchLabels: {app: a}}", "{app: a}", "-1")),
            "Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0");
  EXPECT_EQ(
      Refusal(Deployment("{matchLabels: {app: a}}", "{app: a}", "\"3\"")),
      "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct "
      "field DeploymentSpec.spec.replicas of type int32");
  EXPECT_EQ(Refusal(Deployment("{matchLabels: {app: a}}", "{app: a}")), "");
  EXPECT_EQ(Refusal(Deployment("{matchLabels: {app: b}}", "{app: b}")),
            "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: "
            "v1.LabelSelector{MatchLabels:map[string]string{\"app\":\"b\"}, "
            "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable");
}

TEST_F(ValidationTest, NamesAndLabelsAreChecked) {
  EXPECT_THAT(Refusal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name, namespace: default}\n"),
              testing::StartsWith("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a "
                                  "lowercase RFC 1123 subdomain must consist of"));
  EXPECT_THAT(Refusal("apiVersion: v1\nkind: Service\nmetadata: {name: 1web, namespace: default}\nspec: {ports: "
                      "[{port: 1}]}\n"),
              testing::HasSubstr("a DNS-1035 label must consist of lower case alphanumeric"));
  EXPECT_THAT(Refusal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, labels: {x: 'b c'}}\n"),
              testing::HasSubstr("metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or"));
  EXPECT_THAT(Refusal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default, labels: {/x: b}}\n"),
              testing::HasSubstr("metadata.labels: Invalid value: \"/x\": prefix part must be non-empty"));
  EXPECT_EQ(Refusal("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:a:B'}\n"),
            "");
  EXPECT_EQ(Refusal("apiVersion: networking.x.io/v1\nkind: Gateway\nmetadata: {name: a.b-c, namespace: default}\n"),
            "");
}

TEST_F(ValidationTest, ContainersNeedNamesImagesAndTheVolumesTheyMount) {
  const auto pod = [](const std::string& spec) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec: " + spec + "\n";
  };
  EXPECT_EQ(Refusal(pod("{}")), R"(Pod "p" is invalid: spec.containers: Required value)");
  EXPECT_EQ(
      Refusal(pod("{containers: [{name: a}, {name: a, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}")),
      "Pod \"p\" is invalid: [spec.containers[0].image: Required value, spec.containers[1].name: Duplicate value: "
      "\"a\", spec.containers[1].volumeMounts[0].name: Not found: \"v\"]");
  EXPECT_EQ(Refusal(pod("{containers: [{name: a, image: x}]}")), "");
  EXPECT_EQ(Refusal(pod("{containers: [{name: a, image: z}]}")), "");
  EXPECT_THAT(
      Refusal(pod("{containers: [{name: a, image: z, args: [b]}]}")),
      testing::StartsWith("Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than"));
}

TEST_F(ValidationTest, PartsOfPodsThatContradictThemselvesAreRefused) {
  const auto refusal = [&](const std::string& spec, const std::string& container = "") {
    const std::string prefix = "Pod \"q\" is invalid: spec.";
    std::string out = Refusal("apiVersion: v1\nkind: Pod\nmetadata: {name: q, namespace: default}\nspec: {" + spec +
                              (spec.empty() ? "" : ", ") + "containers: [{name: c, image: x" +
                              (container.empty() ? "" : ", ") + container + "}]}\n");
    EXPECT_TRUE(out.starts_with(prefix)) << out;
    return out.starts_with(prefix) ? out.substr(prefix.size()) : out;
  };
  EXPECT_EQ(refusal("volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]"),
            "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type");
  EXPECT_EQ(refusal("tolerations: [{key: a, operator: Exists, effect: Never}]"),
            "tolerations[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", "
            "\"PreferNoSchedule\", \"NoExecute\"");
  EXPECT_EQ(refusal("topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]"),
            "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero");
  EXPECT_EQ(refusal("hostAliases: [{ip: here, hostnames: [a]}]"),
            "hostAliases[0].ip: Invalid value: \"here\": must be valid IP address");
  EXPECT_EQ(refusal("dnsPolicy: None"), "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None");
  EXPECT_EQ(
      refusal("hostNetwork: true", "ports: [{containerPort: 80, hostPort: 81}]"),
      "containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true");
  EXPECT_EQ(refusal("", "env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]"),
            "containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty");
  EXPECT_EQ(refusal("", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIp}}}]"),
            "containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"status.podIp\": error converting "
            "fieldPath: field label not supported: status.podIp");
  EXPECT_EQ(refusal("", "resources: {requests: {pods: 1}}"),
            "containers[0].resources.requests[pods]: Invalid value: \"pods\": must be a standard resource for "
            "containers");
  EXPECT_EQ(refusal("", "lifecycle: {preStop: {exec: {command: [a]}, httpGet: {port: 80}}}"),
            "containers[0].lifecycle.preStop.httpGet: Forbidden: may not specify more than 1 handler type");
  EXPECT_EQ(Refusal("apiVersion: v1\nkind: Pod\nmetadata: {name: good, namespace: default}\n"
                    "spec: {hostNetwork: true, tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, "
                    "tolerationSeconds: 3}], containers: [{name: c, image: x, ports: [{containerPort: 80}], env: "
                    "[{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}], resources: {limits: "
                    "{example.com/gpu: 1, hugepages-2Mi: 4Mi}}}]}\n"),
            "");
}

TEST_F(ValidationTest, OtherKindsAreRefusedForTheSameReasonsAsByKubernetes) {
  EXPECT_EQ(Refusal("apiVersion: v1\nkind: Service\nmetadata: {name: t, namespace: default}\n"
                    "spec: {externalTrafficPolicy: Local, ports: [{port: 80}]}\n"),
            "Service \"t\" is invalid: spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for "
            "externally-accessible services");
  EXPECT_EQ(Refusal("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: t, namespace: default}\n"
                    "spec: {resources: {requests: {storage: 1Gi}}}\n"),
            "PersistentVolumeClaim \"t\" is invalid: spec.accessModes: Required value: at least 1 access mode is "
            "required");
  EXPECT_EQ(Refusal("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: t, namespace: "
                    "default}\nspec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d}, metrics: [{type: "
                    "Resource}]}\n"),
            "HorizontalPodAutoscaler.autoscaling \"t\" is invalid: spec.metrics[0].resource: Required value: must "
            "populate information for the given metric source");
  EXPECT_EQ(Refusal("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: t}\n"
                    "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\n"
                    "subjects: [{kind: ServiceAccount, name: a}]\n"),
            "ClusterRoleBinding.rbac.authorization.k8s.io \"t\" is invalid: subjects[0].namespace: Required value");
}

// Charts print what nobody set as an empty text, or as a 0.
TEST_F(ValidationTest, AnEmptyTextIsDefaultedAsNothingIs) {
  ASSERT_EQ(Refusal(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {a: }, annotations: {b: null}}
spec:
  restartPolicy: ""
  dnsPolicy: ""
  containers:
    - name: c
      image: app:1.0
      imagePullPolicy: ""
      terminationMessagePolicy: ""
      ports: [{containerPort: 80, protocol: ""}]
      readinessProbe: {httpGet: {port: 80, scheme: "", path: ""}, periodSeconds: 0, successThreshold: 0}
)"),
            "");
  const json pod = api().Get("Pod", {"default", "p"})->body, &spec = pod["spec"], &c = spec["containers"][0];
  EXPECT_EQ(pod["metadata"]["labels"]["a"], "");
  EXPECT_EQ(pod["metadata"]["annotations"]["b"], "");
  EXPECT_EQ(spec["restartPolicy"], "Always");
  EXPECT_EQ(spec["dnsPolicy"], "ClusterFirst");
  EXPECT_EQ(c["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(c["ports"][0]["protocol"], "TCP");
  EXPECT_EQ(c["readinessProbe"], json::parse(R"({"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1,
      "timeoutSeconds": 1, "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}})"));
  ASSERT_EQ(Refusal(R"(
apiVersion: v1
kind: Service
metadata: {name: s, namespace: default}
spec: {type: "", sessionAffinity: "", selector: {app: p}, ports: [{port: 80, protocol: ""}]}
)"),
            "");
  EXPECT_EQ(api().Get("Service", {"default", "s"})->body["spec"]["type"], "ClusterIP");
}

TEST_F(ValidationTest, APodSaysWhatAnApiServerWouldHaveItSay) {
  ASSERT_EQ(Refusal(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  containers:
    - name: c
      image: registry/team:5000/app
      env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
      readinessProbe: {httpGet: {port: 80}}
      resources: {limits: {cpu: 1, memory: 1Gi}}
    - {name: d, image: "app:1.0"}
  volumes: [{name: e}, {name: s, secret: {secretName: s}}]
)"),
            "");
  const json pod = api().Get("Pod", {"default", "p"})->body, &spec = pod["spec"], &c = spec["containers"][0];
  EXPECT_EQ(c["imagePullPolicy"], "Always");
  EXPECT_EQ(spec["containers"][1]["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(spec["containers"][1]["resources"], json::object());
  EXPECT_EQ(c["terminationMessagePath"], "/dev/termination-log");
  EXPECT_EQ(c["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
  EXPECT_EQ(c["readinessProbe"], json::parse(R"({"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1,
      "timeoutSeconds": 1, "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}})"));
  EXPECT_EQ(c["resources"]["requests"], c["resources"]["limits"]);
  EXPECT_EQ(spec["volumes"][0]["emptyDir"], json::object());
  EXPECT_EQ(spec["volumes"][1]["secret"]["defaultMode"], 420);
  EXPECT_EQ(spec["serviceAccount"], "default");
  EXPECT_EQ(spec["tolerations"].size(), 2u);
  EXPECT_EQ(spec["schedulerName"], "default-scheduler");
  EXPECT_EQ(pod["status"]["qosClass"], "Burstable");  // its second container asks for nothing
}

// kubernetes: plugin/pkg/admission/serviceaccount; the older name is the other's alias.
TEST_F(ValidationTest, AnEmptyAccountOfAPodIsTheDefaultOneAndTheOlderNameCounts) {
  const auto account = [&](const std::string& name, const std::string& said) {
    EXPECT_EQ(Refusal("apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: default}\nspec: {" + said +
                      ", containers: [{name: c, image: i}]}\n"),
              "");
    const auto pod = api().Get("Pod", {"default", name});
    return pod == nullptr ? json() : pod->body["spec"]["serviceAccountName"];
  };
  EXPECT_EQ(account("a", "serviceAccountName: ''"), "default");
  EXPECT_EQ(account("b", "serviceAccount: builder"), "builder");
}

TEST_F(ValidationTest, ATemplateOfPodsHasNoMoreThanItsSchemaSays) {
  ASSERT_EQ(Refusal(Deployment("{matchLabels: {a: b}}", "{a: b}")), "");
  const json spec = api().Get("Deployment", {"default", "web"})->body["spec"]["template"]["spec"];
  EXPECT_EQ(spec["containers"][0]["terminationMessagePolicy"], "File");
  EXPECT_EQ(spec["securityContext"], json::object());
  // Admission plugins see to pods alone.
  for (const char* field : {"serviceAccountName", "tolerations", "enableServiceLinks", "priority"})
    EXPECT_FALSE(spec.contains(field)) << field;
}

TEST_F(ValidationTest, SecretsAndConfigMapsCanBeImmutable) {
  const auto secret = [](const std::string& rest) {
    return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n" + rest;
  };
  EXPECT_EQ(Refusal(secret("data: {a: '%%%'}\n")),
            "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0");
  EXPECT_THAT(Refusal(secret("stringData: {'a b': x}\n")), testing::HasSubstr("data[a b]: Invalid value: \"a b\""));
  EXPECT_EQ(Refusal(secret("stringData: {a: x}\nimmutable: true\n")), "");
  EXPECT_EQ(Refusal(secret("stringData: {a: z}\nimmutable: true\n")),
            "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set");
  EXPECT_EQ(Refusal(secret("stringData: {a: x}\nimmutable: true\ntype: other\n")),
            "Secret \"s\" is invalid: type: Invalid value: \"other\": field is immutable");
}

TEST_F(ValidationTest, AConfigMapHoldsAMebibyteAndASecretWhatDecodesToOne) {
  const auto of = [](const char* kind, const std::string& text) {
    return fmt::format("apiVersion: v1\nkind: {}\nmetadata: {{name: big, namespace: default}}\ndata: {{a: \"{}\"}}\n",
                       kind, text);
  };
  constexpr size_t kMost = size_t{1} << 20;
  EXPECT_EQ(Refusal(of("ConfigMap", std::string(kMost, 'x'))), "");
  EXPECT_EQ(Refusal(of("ConfigMap", std::string(kMost + 1, 'x'))),
            R"(ConfigMap "big" is invalid: []: Too long: must have at most 1048576 bytes)");
  EXPECT_EQ(Refusal(of("Secret", std::string(kMost / 3 * 4, 'A'))), "");
  EXPECT_EQ(Refusal(of("Secret", std::string((kMost / 3 + 1) * 4, 'A'))),
            R"(Secret "big" is invalid: data: Too long: must have at most 1048576 bytes)");
}

TEST_F(ValidationTest, WhatScenariosApplyIsNotJudged) {
  EXPECT_TRUE(api().Apply({{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", {{"name", "x"}}}}).ok());
}

TEST_F(ValidationTest, WhatWasStoredUnjudgedDoesNotStandInTheWayOfOtherChanges) {
  ASSERT_TRUE(api().Apply({{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", {{"name", "web"}}}}).ok());
  EXPECT_EQ(Refusal("apiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {a: b}}\nspec: {}\n"), "");
  EXPECT_NE(Refusal("apiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {a: '$'}}\nspec: {}\n"), "");
}

}  // namespace
}  // namespace wavetank::fakekube
