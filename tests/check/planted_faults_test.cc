// Faults planted in copies of the main mesh, one folder each below faults/: applied over it, each must be found, by the
// code of its rule and at its place. docs/check.md has the same table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "check/lint/lint.h"
#include "check/lint/output.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow = 1893456000;  // 2030-01-01: certificates in faults/ have expired
const std::string kRoot = WAVETANK_SOURCE_DIR;
const std::string kMainMesh = kRoot + "/scenarios/multi-primary-multi-network";

struct PlantedFault {
  const char* name;  // a folder in faults/, with a file for each cluster that is changed
  const char* code;
  const char* profile = "";  // empty: the default one
};

constexpr PlantedFault kFaults[] = {
    {"subset-on-one-side", "WT516"},
    {"gateway-without-label", "WT101"},
    {"pod-addresses", "WT106"},
    {"gateway-cluster-ip", "WT102"},
    {"gateway-node-port", "WT103"},
    {"shared-network-name", "WT104"},
    {"gateway-of-another-network", "WT105"},
    {"gateway-external-ips", "WT107"},
    {"gateway-local-policy", "WT108"},
    {"gateway-selects-nothing", "WT109"},
    {"gateway-not-exposed", "WT110"},
    {"gateway-api-hosts-not-exposed", "WT117", "istio-1.30"},
    {"gateway-port-missing", "WT111"},
    {"gateway-exposed-twice", "WT112"},
    {"network-label-missing", "WT113"},
    {"zones-behind-gateway", "WT114"},
    {"gateway-without-view", "WT115"},
    {"mesh-config-word", "IST0133"},
    {"readiness-gate", "WT711"},
    {"mesh-networks-registry", "IST0126"},
    {"secret-in-wrong-namespace", "WT201"},
    {"secret-without-label", "WT201"},
    {"cluster-id", "WT202"},
    {"secret-unreadable", "WT203"},
    {"secret-twice", "WT204"},
    {"secret-of-itself", "WT204"},
    {"trust-domain", "WT302"},
    {"certificate-expired", "WT303"},
    {"ports-differ", "WT401"},
    {"port-names-differ", "WT402"},
    {"headless-on-one-side", "WT403"},
    {"port-name", "IST0118"},
    {"selector-typo", "WT405"},
    {"protocols-of-one-port", "IST0116"},
    {"ports-of-one-target", "IST0137"},
    {"external-name", "IST0150"},
    {"route-to-nowhere", "IST0101"},
    {"subset-undefined", "IST0101"},
    {"gateway-undefined", "WT501"},
    {"virtual-services-of-one-host", "IST0109"},
    {"port-required", "IST0112"},
    {"port-undefined", "WT503"},
    {"regular-expression", "WT534"},
    {"rule-unreachable", "IST0130"},
    {"host-of-no-gateway", "IST0132"},
    {"host-unknown", "WT502"},
    {"rule-for-nothing", "WT511"},
    {"subset-of-nothing", "WT512"},
    {"failover-alone", "WT513"},
    {"failover-priority", "WT514"},
    {"tls-simple", "WT515"},
    {"tls-unverified", "IST0128"},
    {"tls-of-port-unverified", "IST0129"},
    {"rules-of-one-host", "WT517"},
    {"sidecars-of-one-namespace", "IST0111"},
    {"sidecars-of-one-pod", "IST0110"},
    {"sidecar-hides", "WT521"},
    {"sidecar-of-pods-hides", "WT521"},
    {"sidecar-typo", "WT522"},
    {"policy-of-nothing", "IST0127"},
    {"policy-of-no-gateway", "IST0127", "istio-1.30"},
    {"filter-refused", "WT532"},
    {"filter-not-simulated", "WT533"},
    {"filter-of-another-release", "WT531"},
    {"filter-of-no-cluster", "WT531"},
    {"filter-relative", "IST0151"},
    {"filter-removes", "IST0151"},
    {"filter-relative-to-release", "IST0155"},
    {"filter-replace", "IST0152"},
    {"filter-add", "IST0153"},
    {"filter-remove", "IST0154"},
    {"mtls-disabled", "WT541"},
    {"mtls-conflict", "IST0113"},
    {"host-twice", "WT551"},
    {"entry-without-endpoints", "WT552"},
    {"dns-entry-in-network", "WT553"},
    {"entry-without-address", "IST0134"},
    {"gateways-conflict", "IST0145"},
    {"gateways-of-one-certificate", "IST0138"},
    {"claims-nobody-reads", "IST0149"},
    {"subset-of-mesh-alone", "IST0140"},
    {"match-of-prior-rule", "IST0131"},
    {"tcp-rule-unreachable", "IST0130"},
    {"telemetry-without-provider", "IST0157"},
    {"credential-missing", "IST0161"},
    {"injection-uneven", "WT601"},
    {"not-injected", "IST0102"},
    {"injection-labels", "IST0123"},
    {"version-unknown", "WT701"},
    {"version-of-later-release", "WT701"},
    {"kind-misspelt", "WT701"},
    {"removed-kind", "IST0002"},
    {"unknown-field", "IST0133"},
    {"authorization-of-nobody", "WT561"},
    {"authorization-by-method-of-tcp", "WT562"},
    {"authorization-by-address", "WT563"},
    {"authorization-of-gateway", "WT564"},
    {"authorization-admits-nobody", "WT565"},
    {"names-of-nobody", "WT518"},
    {"sni-of-its-own", "WT519"},
    {"locality-unknown", "WT525"},
    {"rule-out-of-sight", "WT526"},
    {"gateway-hosts", "WT117"},
    {"gateway-target-port", "WT118"},
    {"gateway-source-ranges", "WT119"},
    {"network-policy-closes-gateway", "WT121"},
    {"network-policy-cuts-istiod", "WT122"},
    {"network-policy-forgets-gateway", "WT123"},
    {"opted-out-uneven", "WT602"},
    {"ports-bypass-sidecar", "WT603"},
    {"requests-fail", "WT801"},
    {"entry-covers-services", "WT554"},
    {"protocols-differ", "WT404"},
    {"target-port-undeclared", "WT406"},
    {"grpc-behind-http-port", "WT418"},
    {"service-on-one-side", "WT407"},
    {"internal-traffic-policy", "WT408"},
    {"service-hidden", "WT409"},
    {"sidecar-ingress", "WT523"},
    {"pod-pending", "WT703"},
    {"fault-left", "WT504"},
    {"delegate-missing", "WT505"},
    {"route-for-no-client", "WT506"},
    {"retries-never-happen", "WT507"},
    {"selectors-differ", "WT410"},
    {"rules-of-another-protocol", "WT508"},
    {"rule-for-target-port", "WT527"},
    {"authorization-by-service-port", "WT566"},
    {"network-policy-closes-way-out", "WT124"},
    {"annotation-unknown", "IST0108"},
    {"annotation-misplaced", "IST0107"},
    {"annotation-invalid", "IST0125"},
    {"annotation-no-quantity", "WT700"},
    {"account-missing", "WT704"},
    {"revision-of-nobody", "IST0103"},
    {"host-network", "IST0103"},
    {"gateway-scaled-to-zero", "WT109"},
    {"istiod-scaled-to-zero", "WT700"},
    {"ranges-bypass-sidecar", "WT603"},
    {"protocol-of-port-differs", "WT401"},
    {"disabled-for-one-port", "WT541"},
    {"timeout-too-short", "WT801"},
    {"telemetry-provider-unknown", "WT571"},
    {"telemetry-provider-of-another-kind", "WT571"},
    {"authorizer-unknown", "WT567"},
    {"authorizer-asks-itself", "WT574"},
    {"authorizer-by-http1", "WT754"},
    {"collector-by-http1", "WT755"},
    {"key-set-out-of-reach", "WT572"},
    {"key-set-behind-strict-mtls", "WT572"},
    {"key-set-of-a-stranger", "WT573"},
    {"no-default-route", "WT509"},
    {"gateway-budget-blocks-drain", "WT705"},
    {"budget-of-none", "WT705"},
    {"strict-with-plain-clients", "WT543"},
    {"port-mtls-by-service-port", "WT542"},
    {"two-peer-authentications", "WT544"},
    {"request-principals-of-nobody", "WT570"},
    {"path-pattern", "WT569"},
    {"principal-with-scheme", "WT561"},
    {"namespace-of-nobody", "WT561"},
    {"authorization-host-with-port", "WT568"},
    {"rules-out-of-sight", "WT510"},
    {"entry-out-of-sight", "WT556"},
    {"mutual-tls-to-strangers", "WT528"},
    {"tls-twice", "WT529"},
    {"outlier-ejects-gateway", "WT530"},
    {"discovery-selectors", "WT707"},
    {"cluster-local-by-mesh-config", "WT412"},
    {"mesh-config-unreadable", "WT706"},
    {"network-policy-closes-webhook", "WT122"},
    {"probes-not-rewritten", "WT604"},
    {"gateway-selects-nothing-at-ingress", "IST0127"},
    {"gateway-port-not-in-service", "IST0104"},
    {"network-label-at-application", "WT102"},
    {"user-of-the-proxy", "IST0144"},
    {"reserved-port", "WT605"},
    {"image-auto", "IST0146"},
    {"webhook-of-nobody", "IST0139"},
    {"addresses-of-two-entries", "WT555"},
    {"distribute-to-nowhere", "WT525"},
    {"mesh-locality-nowhere", "WT525"},
    {"tag-override-text", "WT742"},
    {"rate-limit-off", "WT743"},
    {"access-log-no-json", "WT744"},
    {"access-log-operator", "WT532"},
    {"gateway-port-of-two-protocols", "WT745"},
    {"pool-idle-at-once", "WT746"},
    {"pool-of-one-request", "WT746"},
    {"outlier-interval", "WT747"},
    {"drain-of-nothing", "WT748"},
    {"cors-any-origin", "WT749"},
    {"workload-group-of-nowhere", "WT750"},
    {"gateway-secret-no-certificate", "IST0161"},
    {"gateway-secret-other-key", "IST0161"},
    {"endpoints-port-name", "WT415"},
    {"failover-label-of-nobody", "WT752"},
    {"match-scheme-capitals", "WT585"},
    {"named-port-excluded", "WT603"},
    {"ingress-without-gateway", "WT753"},
    {"tag-removed-typo", "WT742"},
    {"rule-selects-nobody", "IST0127"},
    {"external-selector-without-mtls", "WT557"},
    {"app-protocol-against-name", "WT411"},
    {"remote-server-is-loopback", "WT206"},
    {"rule-exported-elsewhere", "WT526"},
    {"port-called-otherwise", "WT413"},
    {"istiod-forbidden", "WT208"},
    {"istiod-role-of-another-account", "WT208"},
    {"reader-forbidden", "WT207"},
    {"policy-outside-of-root", "WT545"},
    {"subsets-of-one-name", "WT535"},
    {"headless-elsewhere", "WT414"},
    {"remote-token-ends", "WT209"},
    {"proxy-never-ready", "WT708"},
    {"entry-through-gateway", "WT558"},
    {"gateway-view-of-another-network", "WT125"},
    {"gateway-pods-of-another-network", "WT126"},
    {"system-namespace-of-another-network", "WT126"},
    {"mesh-ids-differ", "WT304"},
    {"one-server-twice", "WT202"},
    {"remote-authority-of-another", "WT210"},
    {"gateway-not-injected", "WT109"},
    {"one-side-route", "WT537"},
    {"one-side-rule", "WT537"},
    {"one-side-policy", "WT546"},
    {"hash-across-networks", "WT536"},
    {"port-settings-replace", "WT539"},
    {"pool-of-one", "WT538"},
    {"mesh-networks-name", "WT127"},
    {"mesh-networks-service", "WT127"},
    {"workload-in-unknown-network", "WT101"},
    {"service-of-nothing", "WT415"},
    {"session-affinity", "WT416"},
    {"tokens-optional", "WT575"},
    {"tokens-of-tcp", "WT757"},
    {"two-telemetries", "IST0160"},
    {"injection-typo", "WT606"},
    {"job-with-sidecar", "WT607"},
    {"virtual-services-differ", "WT547"},
    {"authorization-differs", "WT547"},
    {"mesh-configs-differ", "WT709"},
    {"entry-on-one-side", "WT710"},
    {"gateway-port-udp", "WT111"},
    {"gateway-as-sidecar", "WT109"},
    {"gateway-internal", "WT128"},
    {"gateway-opens-tls", "WT129"},
    {"gateway-probe", "WT714"},
    {"probe-port-name", "WT714"},
    {"proxy-image", "IST0105"},
    {"scales-nobody", "WT713"},
    {"tls-mode-label", "WT610"},
    {"interception-none", "WT608"},
    {"limit-below-request", "WT609"},
    {"external-name-on-one-side", "WT403"},
    {"headless-over-networks", "WT417"},
    {"namespace-on-one-side", "WT407"},
    {"tls-files-missing", "WT548"},
    {"outlier-never-ejects", "WT540"},
    {"outlier-panics", "WT540"},
    {"passthrough-balancer", "WT549"},
    {"destination-port-of-another", "WT503"},
    {"star-in-exact", "WT520"},
    {"mirror-to-itself", "WT583"},
    {"route-to-network-gateway", "WT582"},
    {"host-with-a-dot", "WT502"},
    {"sidecar-egress-port", "WT524"},
    {"sidecar-default-endpoint", "WT581"},
    {"plain-at-443", "WT559"},
    {"endpoint-without-mesh-tls", "WT579"},
    {"workload-of-nobody", "WT560"},
    {"workload-port-name", "WT560"},
    {"workload-account", "WT560"},
    {"auto-mtls-off", "WT715"},
    {"services-exported-to-nobody", "WT409"},
    {"rules-exported-to-nobody", "WT526"},
    {"connect-timeout-of-mesh", "WT801"},
    {"connect-timeout-by-filter", "WT801"},
    {"port-mtls-of-nobody", "WT542"},
    {"path-without-slash", "WT576"},
    {"method-in-small-letters", "WT576"},
    {"principal-of-gateway", "WT577"},
    {"deny-any-method", "WT565"},
    {"issuer-of-nobody", "WT570"},
    {"pull-secret-missing", "WT578"},
    {"discovery-port", "WT708"},
    {"entry-of-a-service", "WT532"},
    {"dns-closed", "WT130"},
    {"istiod-closed-in", "WT130"},
    {"gateway-closed-in", "WT130"},
    {"quota-of-load-balancers", "WT716"},
    {"pod-security-baseline", "WT717"},
    {"istiod-service-port", "WT211"},
    {"istiod-webhook-port", "WT211"},
    {"istiod-service-selector", "WT211"},
    {"network-label-at-namespace", "WT718"},
    {"ambient-without-ztunnel", "WT759"},
    {"resolver-of-the-node", "WT719"},
    {"governing-service-missing", "WT719"},
    {"ingress-to-nobody", "WT584"},
    {"route-of-no-gateway", "WT584"},
    {"mesh-networks-against-label", "WT133"},
    {"quota-of-no-pods", "WT700"},
    {"ca-server-off", "WT700"},
    {"csr-cluster-id", "WT700"},
    {"csr-issuer-missing", "WT700"},
    {"csr-server-name", "WT708"},
    {"csr-trust-domain", "WT700"},
    {"csr-argument", "WT700"},
    {"csr-port", "WT700"},
    {"csr-role", "WT700"},
    {"gateway-unannounced", "WT132"},
    {"token-audiences", "WT708"},
    {"discovery-at-webhook", "WT708"},
    {"redirect-to-itself", "WT586"},
    {"match-without-slash", "WT585"},
    {"priority-class-missing", "WT720"},
    {"root-namespace-missing", "WT545"},
    {"workload-out-of-reach", "WT801"},
    {"image-two-tags", "WT700"},
    {"image-capitals", "WT700"},
    {"gateway-image-scheme", "WT700"},
    {"istiod-image-old", "WT724"},
    {"image-pull-secret", "WT723"},
    {"claim-missing", "WT723"},
    {"filter-removes-nothing", "WT531"},
    {"filter-merges-nothing", "WT531"},
    {"filter-of-no-port", "WT531"},
    {"filter-of-no-chain", "WT531"},
    {"filter-of-no-virtual-host", "WT531"},
    {"filter-of-no-route", "WT531"},
    {"filter-of-no-route-configuration", "WT531"},
    {"filter-after-nothing", "WT531"},
    {"gateway-host-network", "WT109"},
    {"injector-disabled", "IST0103"},
    {"injector-never", "IST0103"},
    {"same-load-balancer-ip", "WT131"},
    {"gateway-port-label-word", "WT136"},
    {"node-selector-word", "WT136"},
    {"two-budgets", "WT705"},
    {"authority-without-port", "WT585"},
    {"origin-without-scheme", "WT585"},
    {"rewrite-leaves-slash", "WT597"},
    {"regex-of-a-beginning", "WT596"},
    {"delegate-outside", "WT505"},
    {"field-level", "IST0133"},
    {"warm-up-of-random", "WT595"},
    {"outlier-old-field", "IST0133"},
    {"policy-path-query", "WT576"},
    {"filter-value-typo", "IST0133"},
    {"filter-asks-nobody", "WT599"},
    {"filter-asks-by-http1", "WT756"},
    {"sidecar-of-the-root", "WT521"},
    {"https-redirect-to-nobody", "WT598"},
    {"routes-hidden-from-gateway", "WT510"},
    {"memory-without-unit", "WT611"},
    {"processors-for-millis", "WT611"},
    {"drain-beyond-grace", "WT612"},
    {"dns-allocated-uncaptured", "WT613"},
    {"agent-variable-typo", "WT613"},
    {"autoscaler-without-requests", "WT713"},
    {"target-port-of-tls", "WT559"},
    {"network-policy-direction", "WT139"},
    {"network-policy-dns-by-tcp", "WT130"},
    {"network-policy-dns-label", "WT130"},
    {"mesh-networks-words", "IST0133"},
    {"mesh-config-level", "IST0133"},
    {"mesh-config-of-no-revision", "WT702"},
    {"webhook-rules", "IST0139"},
    {"metal-lb-field", "IST0133"},
    {"metal-lb-annotation-typo", "WT140"},
    {"kind-host-ports", "WT729"},
    {"cluster-dns-domain", "WT730"},
    {"cluster-dns-plugin", "WT730"},
    {"cluster-dns-stub", "WT730"},
    {"budget-of-nobody", "WT722"},
    {"autoscaler-kind", "WT713"},
    {"autoscalers-twice", "WT713"},
    {"external-name-of-nobody", "WT589"},
    {"export-to-typo", "WT409"},
    {"export-to-mixed", "WT409"},
    {"routes-port-of-nobody", "WT585"},
    {"routes-tcp-port", "WT585"},
    {"routes-query-in-path", "WT585"},
    {"routes-scheme-https", "WT585"},
    {"routes-match-gateway", "WT585"},
    {"routes-passthrough-gateway", "WT508"},
    {"routes-gateway-tcp", "WT508"},
    {"routes-direct-response", "WT504"},
    {"routes-redirect-nobody", "WT587"},
    {"rule-subset-never-used", "WT588"},
    {"rule-credential", "WT550"},
    {"exposed-bind", "WT110"},
    {"gateway-secret-no-key", "IST0161"},
    {"entry-name-of-nobody", "WT589"},
    {"entry-service-name", "WT589"},
    {"entry-outside", "WT725"},
    {"entry-address-of-nobody", "WT758"},
    {"workload-address-name", "WT560"},
    {"policy-both-namespace", "WT592"},
    {"policy-tcp-port-of-nobody", "WT592"},
    {"policy-deny-not", "WT592"},
    {"policy-deny-all-ns", "WT592"},
    {"policy-sni", "WT592"},
    {"policy-destination-ip", "WT592"},
    {"policy-audit", "WT593"},
    {"network-policy-clients", "WT134"},
    {"network-policy-namespace-label", "WT134"},
    {"network-policy-port-name", "WT134"},
    {"network-policy-selects-nobody", "WT134"},
    {"network-policy-egress-peer", "WT134"},
    {"network-policy-default-deny", "WT135"},
    {"webhook-path", "IST0139"},
    {"validation-webhook-path", "IST0139"},
    {"webhook-second", "IST0139"},
    {"webhook-selector", "IST0103"},
    {"mesh-service-settings", "WT412"},
    {"mesh-networks-port", "WT133"},
    {"mesh-networks-own", "WT133"},
    {"metal-lb-auto", "WT102"},
    {"metal-lb-annotation", "WT102"},
    {"metal-lb-ip-outside", "WT102"},
    {"gateway-api-class", "WT591"},
    {"gateway-api-section", "WT591"},
    {"gateway-api-host", "WT591"},
    {"gateway-api-namespace", "WT591"},
    {"gateway-api-grant", "WT591"},
    {"gateway-api-port", "WT584"},
    {"gateway-api-weights", "WT584"},
    {"gateway-api-cert", "WT591"},
    {"bootstrap-override", "WT700"},
    {"discovery-plain", "WT708"},
    {"image-proxy-tag", "WT700"},
    {"image-istiod-tag", "WT700"},
    {"image-gateway-variant", "WT700"},
    {"image-hub-typo", "WT726"},
    {"image-half-release", "WT726"},
    {"istiod-variable-typo", "WT727"},
    {"istiod-variable-value", "WT727"},
    {"gateway-health-port", "WT137"},
    {"network-policy-expression", "WT121"},
    {"metal-lb-node", "WT132"},
    {"metal-lb-no-peer", "WT132"},
    {"metal-lb-allocation", "WT102"},
    {"filter-removes-listener", "WT531"},
    {"filter-removes-chain", "WT531"},
    {"filter-removes-virtual-host", "WT531"},
    {"filter-removes-elsewhere", "WT531"},
    {"filter-removes-subset", "WT531"},
    {"filter-metadata", "WT531"},
    {"filter-application-protocols", "WT531"},
    {"extension-unused", "WT531"},
    {"extension-missing", "WT594"},
    {"metal-lb-services", "WT729"},
    {"kind-subnets", "WT729"},
    {"network-policy-egress-pods", "WT138"},
    {"provider-of-no-release", "WT571", "istio-1.30"},
    {"any-server-believed", "IST0128", "istio-1.30"},
    {"key-sets-from-anywhere", "IST0175", "istio-1.30"},
    {"gateway-port-of-no-service", "IST0162", "istio-1.30"},
    {"alias-of-nobody", "WT589", "istio-1.30"},
    {"path-template", "WT569"},
};

absl::StatusOr<LintResult> LintScenario(const std::string& scenario, const std::string& overlay,
                                        const std::string& profile = "") {
  MeshSource source;
  source.scenario = scenario;
  source.profile = profile;
  if (!overlay.empty()) {
    for (const auto& entry : fs::directory_iterator(overlay))
      source.with.emplace_back(entry.path().stem().string(), entry.path().string());
    std::sort(source.with.begin(), source.with.end());
  }
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  if (!settled.ok()) return settled.status();
  const Mesh mesh(*std::move(settled));
  LintOptions options;
  options.unix_now = kNow;
  return Lint(mesh, options);
}

std::vector<std::string> Codes(const LintResult& result) {
  std::vector<std::string> out;
  for (const Finding& f : result.findings) out.push_back(fmt::format("{} {} {}", f.rule->code, f.object, f.message));
  return out;
}

const Finding* FindingOf(const LintResult& result, std::string_view code) {
  for (const Finding& f : result.findings) {
    if (f.rule->code == code) return &f;
  }
  return nullptr;
}

LintResult LintFault(const std::string& name) {
  absl::StatusOr<LintResult> result = LintScenario(kMainMesh, kRoot + "/tests/check/faults/" + name);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : LintResult();
}

class PlantedFaults : public testing::TestWithParam<PlantedFault> {};

TEST_P(PlantedFaults, IsFound) {
  const std::string folder = kRoot + "/tests/check/faults/" + GetParam().name;
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder, GetParam().profile);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto found = std::find_if(result->findings.begin(), result->findings.end(),
                                  [&](const Finding& f) { return f.rule->code == GetParam().code; });
  ASSERT_NE(found, result->findings.end()) << testing::PrintToString(Codes(*result));
  // What names an object names the line that a person has to mend.
  for (const Finding& finding : result->findings) {
    if (finding.object.empty()) continue;
    EXPECT_FALSE(finding.place.file.empty()) << finding.rule->code << " " << finding.object;
    EXPECT_GT(finding.place.line, 0) << finding.rule->code << " " << finding.object;
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheMainMesh, PlantedFaults, testing::ValuesIn(kFaults), [](const auto& parameter) {
  std::string name = parameter.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(PlantedFaultsTable, EveryFolderIsARowAndInTheDocument) {
  std::set<std::string> rows;
  std::ifstream in(kRoot + "/" + "docs/check.md");
  std::ostringstream text;
  text << in.rdbuf();
  for (const PlantedFault& fault : kFaults) {
    rows.insert(fault.name);
    EXPECT_NE(FindRule(fault.code), nullptr) << fault.code;
    EXPECT_THAT(text.str(), testing::HasSubstr(fmt::format("| `{}` |", fault.name)));
  }
  for (const auto& entry : fs::directory_iterator(kRoot + "/tests/check/faults"))
    EXPECT_TRUE(rows.contains(entry.path().filename().string())) << entry.path();
  EXPECT_GE(rows.size(), 40u);
}

TEST(Lint, FindsNothingInMeshesThatWork) {
  for (const char* story : {"multi-primary-multi-network", "multi-primary-one-network", "primary-remote-multi-network",
                            "primary-remote-one-network"}) {
    const absl::StatusOr<LintResult> result = LintScenario(kRoot + "/scenarios/" + story, "");
    ASSERT_TRUE(result.ok()) << story << ": " << result.status();
    EXPECT_THAT(Codes(*result), testing::IsEmpty()) << story;
  }
}

// Policies, filters and routes that look like planted ones, and are right; a folder each below healthy/.
TEST(Lint, FindsNothingInWhatLooksLikeAFaultAndIsNone) {
  size_t looked_at = 0;
  for (const auto& entry : fs::directory_iterator(kRoot + "/tests/check/healthy")) {
    for (const std::string& profile : {std::string(), std::string("istio-1.30")}) {
      // What older releases get wrong is right in today's.
      if (profile.empty() && entry.path().filename() == "of-1.30") continue;
      const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, entry.path().string(), profile);
      ASSERT_TRUE(result.ok()) << entry.path() << ": " << result.status();
      EXPECT_THAT(Codes(*result), testing::IsEmpty()) << entry.path() << " " << profile;
    }
    ++looked_at;
  }
  EXPECT_GE(looked_at, 8u);
}

// Where pods of two sites reach each other nothing needs a network's name, and a Gateway of the Gateway API opens the
// way in as Istio's own does.
TEST(Lint, TakesRoutedSitesForOneNetworkAndGatewaysOfBothApis) {
  for (const char* story : {"sites-and-firewalls", "dual-stack", "gateway-api"}) {
    const absl::StatusOr<LintResult> result = LintScenario(kRoot + "/scenarios/" + story, "");
    ASSERT_TRUE(result.ok()) << story << ": " << result.status();
    EXPECT_THAT(Codes(*result), testing::IsEmpty()) << story;
  }
}

TEST(Lint, FindsTwoRootsAndASharedName) {
  const auto codes = [](const std::string& story) {
    const absl::StatusOr<LintResult> result = LintScenario(kRoot + "/scenarios/" + story, "");
    std::set<std::string> out;
    if (result.ok()) {
      for (const Finding& f : result->findings) out.emplace(f.rule->code);
    }
    return out;
  };
  EXPECT_THAT(codes("two-roots"), testing::Contains("WT301"));
  EXPECT_THAT(codes("shared-network-name"), testing::Contains("WT104"));
}

// A real istiod 1.30.3 ends with this mesh; 1.18.2 makes no priorities of it.
TEST(Lint, SaysWhereTheReleasesIstiodPanics) {
  const fs::path folder = fs::path(testing::TempDir()) / "panics";
  fs::create_directories(folder);
  std::ofstream(folder / "cluster1.yaml") << R"(
apiVersion: networking.istio.io/v1beta1
kind: ServiceEntry
metadata: {name: names, namespace: sample}
spec:
  hosts: [names.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: DNS
  endpoints: [{address: a.example.com, locality: region1/zone1}, {address: b.example.com, locality: region2/zone1}]
---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: {name: names, namespace: sample}
spec:
  host: names.example.com
  trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [topology.kubernetes.io/region]}}}
)";
  const auto found = [&](const std::string& profile) {
    const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder.string(), profile);
    EXPECT_TRUE(result.ok()) << result.status();
    const Finding* const finding = result.ok() ? FindingOf(*result, "WT751") : nullptr;
    return finding == nullptr ? std::string() : finding->cluster + " " + finding->object;
  };
  EXPECT_EQ(found("istio-1.30"), "cluster1 DestinationRule sample/names");
  EXPECT_EQ(found("istio-1.18"), "");
}

TEST(Lint, SaysWhereNamesThatProxiesLookUpCannotBeReached) {
  const fs::path folder = fs::path(testing::TempDir()) / "names";
  fs::create_directories(folder);
  std::ofstream(folder / "cluster1.yaml") << R"(
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: names, namespace: sample}
spec:
  hosts: ["*.example.com"]
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 9000, name: grpc, protocol: GRPC}]
  resolution: DYNAMIC_DNS
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: names, namespace: sample}
spec:
  host: "*.example.com"
  trafficPolicy: {outlierDetection: {}}
)";
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder.string(), "istio-1.30");
  ASSERT_TRUE(result.ok()) << result.status();
  const Finding* const refused = FindingOf(*result, "WT552");
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->object, "ServiceEntry sample/names");
  EXPECT_THAT(refused->message, testing::HasSubstr("port 9000 is GRPC"));
  const Finding* const panics = FindingOf(*result, "WT751");
  ASSERT_NE(panics, nullptr);
  EXPECT_THAT(panics->message, testing::HasSubstr("outlierDetection of *.example.com"));
}

// What istiods and proxies show has the object that causes it, in its own cluster.
TEST(Lint, NamesTheObjectBehindWhatProxiesMeet) {
  const std::map<std::string, std::pair<std::string, std::string>> cause = {
      {"gateway-without-label", {"WT101", "cluster2 Service istio-system/istio-eastwestgateway"}},
      {"pod-addresses", {"WT106", "cluster2 Service istio-system/istio-eastwestgateway"}},
      {"zones-behind-gateway", {"WT114", "cluster2 Service sample/helloworld"}},
      {"gateway-not-injected", {"WT109", "cluster2 Deployment istio-system/istio-eastwestgateway"}},
      {"workload-in-unknown-network", {"WT101", "cluster1 WorkloadEntry sample/vm"}},
      {"remote-authority-of-another", {"WT210", "cluster1 Secret istio-system/istio-remote-secret-again"}},
      {"filter-refused", {"WT532", "cluster1 EnvoyFilter sample/patch"}}};
  for (const auto& [fault, expected] : cause) {
    const LintResult result = LintFault(fault);
    const Finding* found = FindingOf(result, expected.first);
    ASSERT_NE(found, nullptr) << fault;
    EXPECT_EQ(found->cluster + " " + found->object, expected.second);
  }
}

TEST(Lint, SaysThatTheGatewayWasNotInjected) {
  const LintResult result = LintFault("gateway-not-injected");
  const Finding* const found = FindingOf(result, "WT109");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->message, testing::HasSubstr("their label sidecar.istio.io/inject is 'false'"));
}

// A webhook that selects pods may be nobody's, and an injector that is asked may say no.
TEST(Lint, SaysWhoLeavesPodsWithoutAProxy) {
  const std::map<std::string, std::pair<std::string, std::string>> why = {
      {"gateway-host-network", {"WT109", "istiod leaves pods with hostNetwork out"}},
      {"injector-disabled", {"IST0103", "the policy of ConfigMap istio-system/istio-sidecar-injector is disabled"}},
      {"injector-never", {"IST0103", "neverInjectSelector of ConfigMap istio-system/istio-sidecar-injector"}},
      {"webhook-selector", {"IST0103", "no webhook selects them: the selectors say istio-injection=true"}}};
  for (const auto& [fault, expected] : why) {
    const LintResult result = LintFault(fault);
    const Finding* const found = FindingOf(result, expected.first);
    ASSERT_NE(found, nullptr) << fault;
    EXPECT_THAT(found->message + "; " + std::string(found->Cause()), testing::HasSubstr(expected.second)) << fault;
  }
}

// What is misspelt, or a level too deep, is told with where it was meant, at its object.
TEST(Lint, SaysWhereAFieldWasMeant) {
  const std::map<std::string, std::pair<std::string, std::string>> hints = {
      {"field-level", {"cluster1 VirtualService sample/helloworld", "(it stands at spec.http[0].route[0])"}},
      {"metal-lb-field", {"cluster2 IPAddressPool metallb-system/pool", "(did you mean 'autoAssign'?)"}},
      {"mesh-config-level", {"cluster1 ConfigMap istio-system/istio", "it stands within defaultConfig"}},
      {"mesh-networks-words", {"cluster1 ConfigMap istio-system/istio", "did you mean 'fromRegistry'?"}},
      {"filter-value-typo", {"cluster1 EnvoyFilter sample/f", "unknown field \"conect_timeout\""}}};
  for (const auto& [fault, expected] : hints) {
    const LintResult result = LintFault(fault);
    const Finding* const found = FindingOf(result, "IST0133");
    ASSERT_NE(found, nullptr) << fault;
    EXPECT_EQ(found->cluster + " " + found->object, expected.first);
    EXPECT_THAT(found->message, testing::HasSubstr(expected.second)) << fault;
  }
}

// Two primaries of which neither knows the other are two meshes, whatever they were meant to be.
TEST(Lint, PrimariesOfWhichNoneHasARemoteSecretAreTold) {
  std::ifstream file(kMainMesh + "/scenario.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  std::string yaml = text.str();
  for (const std::string_view gone : {"  - {of: cluster2, in: cluster1}\n", "  - {of: cluster1, in: cluster2}\n"}) {
    const size_t at = yaml.find(gone);
    ASSERT_NE(at, std::string::npos) << gone;
    yaml.erase(at, gone.size());
  }
  for (size_t at = yaml.find("../manifests"); at != std::string::npos; at = yaml.find("../manifests"))
    yaml.replace(at, 2, kRoot + "/scenarios");
  const std::string path = testing::TempDir() + "/strangers.yaml";
  std::ofstream(path) << yaml;
  const absl::StatusOr<LintResult> result = LintScenario(path, "");
  ASSERT_TRUE(result.ok()) << result.status();
  const Finding* const found = FindingOf(*result, "WT205");
  ASSERT_NE(found, nullptr) << testing::PrintToString(Codes(*result));
  EXPECT_THAT(found->message, testing::HasSubstr("no istiod of these 2 primary clusters has a remote Secret"));
}

// A pod whose queries a NetworkPolicy drops finds no istiod: the policy is told, and the proxy points to it.
TEST(Lint, SaysThatAPolicyKeepsPodsFromDns) {
  for (const auto& [fault, what] : {std::pair("network-policy-dns-by-tcp", "from UDP port 53"),
                                    std::pair("network-policy-dns-label", "none of its peers is kube-dns")}) {
    const LintResult result = LintFault(fault);
    const Finding* const policy = FindingOf(result, "WT130");
    ASSERT_NE(policy, nullptr) << fault;
    EXPECT_THAT(policy->message, testing::HasSubstr(what));
    const Finding* const proxy = FindingOf(result, "WT708");
    ASSERT_NE(proxy, nullptr) << fault;
    EXPECT_THAT(std::string(proxy->Remedy()), testing::HasSubstr("kube-dns"));
  }
}

// A pod that has a proxy and does not start is no pod without one.
TEST(Lint, APodThatDoesNotStartIsToldAtItsWorkloadAlone) {
  for (const char* fault : {"bootstrap-override", "image-capitals"}) {
    const LintResult result = LintFault(fault);
    EXPECT_EQ(FindingOf(result, "IST0103"), nullptr) << fault;
    const Finding* const found = FindingOf(result, "WT700");
    ASSERT_NE(found, nullptr) << fault;
    EXPECT_EQ(found->cluster + " " + found->object, "cluster2 Deployment sample/helloworld-v2") << fault;
  }
}

// istiod: pilot/pkg/model/gateway.go, resolvePorts: the Gateway's port is the Service's, and pods listen at its target.
TEST(Lint, ATargetPortThatIstiodTranslatesIsNoFault) {
  std::ifstream file(kRoot + "/scenarios/manifests/eastwest-network2.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  std::string yaml = text.str();
  const size_t at = yaml.find("targetPort: 15443");
  ASSERT_NE(at, std::string::npos);
  yaml.replace(at, std::string("targetPort: 15443").size(), "targetPort: 8443");
  const std::string folder = testing::TempDir() + "/translated-port";
  fs::create_directories(folder);
  std::ofstream(folder + "/cluster2.yaml") << yaml;
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// In a multi-primary mesh rules and policies that stand on both sides hold on both.
TEST(Lint, RulesAndPoliciesOfBothSidesAreNoFault) {
  const std::string folder = testing::TempDir() + "/both-sides";
  fs::create_directories(folder);
  for (const char* cluster : {"/cluster1.yaml", "/cluster2.yaml"}) {
    std::ofstream(folder + cluster)
        << "apiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\n"
           "metadata: {name: helloworld, namespace: sample}\nspec: {host: helloworld, trafficPolicy: "
           "{outlierDetection: "
           "{consecutive5xxErrors: 3, maxEjectionPercent: 10}}}\n---\napiVersion: security.istio.io/v1beta1\n"
           "kind: PeerAuthentication\nmetadata: {name: default, namespace: sample}\nspec: {mtls: {mode: STRICT}}\n";
  }
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// What has one name on both sides and means two things: the first field that differs, with both values and both places.
TEST(Lint, NamesTheFirstFieldThatDiffersBetweenPrimaries) {
  const LintResult result = LintFault("virtual-services-differ");
  const Finding* found = FindingOf(result, "WT547");
  ASSERT_NE(found, nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(found->cluster + " " + found->object, "cluster1 VirtualService sample/helloworld");
  EXPECT_THAT(found->message, testing::HasSubstr("spec.http[0].timeout is 5s here and 10s in cluster2 ("));
  EXPECT_THAT(found->message, testing::HasSubstr("virtual-services-differ/cluster2.yaml:2)"));
}

TEST(Lint, TheSameRuleInOtherSpellingIsNoDifference) {
  const std::string folder = testing::TempDir() + "/spelt-otherwise";
  fs::create_directories(folder);
  const std::string head =
      "apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\n"
      "metadata: {name: helloworld, namespace: sample}\nspec: ";
  std::ofstream(folder + "/cluster1.yaml")
      << head << "{hosts: [helloworld], http: [{timeout: 5s, route: [{destination: {host: helloworld}}]}]}\n";
  std::ofstream(folder + "/cluster2.yaml")
      << head
      << "{hosts: [helloworld.sample.svc.cluster.local], exportTo: [], http: [{route: [{destination: {host: "
         "helloworld.sample.svc.cluster.local}}], timeout: 5000ms}]}\n";
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// Of failures that an object of Istio's sets off, that object is the place.
TEST(Lint, FailingRequestsAreToldAtWhatMakesThemFail) {
  const std::map<std::string, std::string> place = {{"connect-timeout-of-mesh", "ConfigMap istio-system/istio"},
                                                    {"connect-timeout-by-filter", "EnvoyFilter sample/ef"},
                                                    {"requests-fail", "DestinationRule sample/helloworld"}};
  for (const auto& [fault, object] : place) {
    const LintResult result = LintFault(fault);
    const Finding* found = FindingOf(result, "WT801");
    ASSERT_NE(found, nullptr) << fault << testing::PrintToString(Codes(result));
    EXPECT_EQ(found->object, object) << fault;
  }
}

// An Envoy that refuses is told once, and not as pods whose istiod is out of reach.
TEST(Lint, AProxyThatWaitsForWhatItRefusedIsNoTroubleOfItsAgent) {
  EXPECT_EQ(FindingOf(LintFault("tls-files-missing"), "WT708"), nullptr);
}

TEST(Lint, APodOfAnotherNetworkIsNotBlamedOnThatNetworksGateway) {
  const std::string folder = testing::TempDir() + "/pod-of-another-network";
  fs::create_directories(folder);
  std::ifstream file(kRoot + "/scenarios/manifests/helloworld-v2.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  std::string yaml = text.str();
  const std::string labels = "      labels: {app: helloworld, version: v2";
  const size_t at = yaml.rfind(labels);
  ASSERT_NE(at, std::string::npos);
  yaml.insert(at + labels.size(), ", topology.istio.io/network: network1");
  std::ofstream(folder + "/cluster2.yaml") << yaml;
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(FindingOf(*result, "WT126"), nullptr);
  for (const Finding& finding : result->findings) EXPECT_EQ(finding.cluster, "cluster2") << finding.message;
}

// As SPIRE's server in Istio's samples has it: a port for health that nobody declares.
TEST(Lint, TwoProbesOfAnUndeclaredPortAreNoFault) {
  std::ifstream file(kRoot + "/scenarios/manifests/helloworld-v2.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  std::string yaml = text.str();
  const std::string image = "          image: example/helloworld:v2\n";
  const size_t at = yaml.find(image);
  ASSERT_NE(at, std::string::npos);
  yaml.insert(at + image.size(),
              "          readinessProbe: {httpGet: {path: /ready, port: 8080}}\n"
              "          livenessProbe: {httpGet: {path: /live, port: 8080}}\n");
  const std::string folder = testing::TempDir() + "/health-port";
  fs::create_directories(folder);
  std::ofstream(folder + "/cluster2.yaml") << yaml;
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// Pairs of client and Service beyond the first 400 are not asked, and that is told.
TEST(Lint, SaysThatRequestsWereNotSentBetweenAllPairs) {
  const std::string folder = testing::TempDir() + "/many-services";
  fs::create_directories(folder);
  std::ofstream out(folder + "/cluster1.yaml");
  for (int i = 0; i < 160; ++i) {
    out << "apiVersion: v1\nkind: Service\nmetadata: {name: s" << i
        << ", namespace: sample}\nspec: {selector: {app: helloworld}, ports: [{name: http, port: " << 6000 + i
        << ", targetPort: 5000}]}\n---\n";
  }
  out.close();
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->notes, testing::Contains(testing::HasSubstr("between 400 pairs of client and Service")));
}

TEST(Lint, ATracingProviderNextToAnotherIsNoFault) {
  const std::string folder = testing::TempDir() + "/provider-there";
  fs::create_directories(folder);
  std::ofstream(folder + "/cluster1.yaml")
      << "apiVersion: telemetry.istio.io/v1alpha1\nkind: Telemetry\nmetadata: {name: logs, namespace: istio-system}\n"
         "spec: {accessLogging: [{providers: [{name: envoy}]}], metrics: [{providers: [{name: prometheus}]}]}\n";
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// Rules that take every request one way or another need no last one.
TEST(Lint, RulesThatTogetherTakeAllNeedNoDefaultRoute) {
  const std::string folder = testing::TempDir() + "/rules-take-all";
  fs::create_directories(folder);
  const std::string head =
      "apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\nmetadata: {name: helloworld, namespace: sample}\n"
      "spec:\n  hosts: [helloworld]\n  http:\n";
  const std::string route = ", route: [{destination: {host: helloworld, port: {number: 5000}}}]}\n";
  for (const std::string& rules : {"    - {match: [{uri: {prefix: /}}]" + route, "    - {match: [{port: 5000}]" + route,
                                   "    - {match: [{headers: {end-user: {exact: jason}}}]" + route +
                                       "    - {match: [{withoutHeaders: {end-user: {exact: jason}}}]" + route}) {
    for (const char* cluster : {"/cluster1.yaml", "/cluster2.yaml"}) std::ofstream(folder + cluster) << head << rules;
    const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(Codes(*result), testing::IsEmpty()) << rules;
  }
}

LintResult LintManifest(const std::string& name, const std::string& yaml,
                        const std::vector<std::string>& clusters = {"cluster1"}) {
  const std::string folder = testing::TempDir() + "/" + name;
  fs::create_directories(folder);
  for (const std::string& cluster : clusters) std::ofstream(folder + "/" + cluster + ".yaml") << yaml;
  absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : LintResult();
}

// As istio.io's tasks of egress have it: HTTP that a route turns to the port of TLS, which the proxy begins; and TLS of
// the application's own, routed by SNI.
TEST(Lint, TlsOriginationOfIstiosOwnTasksIsNoFault) {
  const LintResult result = LintManifest("egress", R"(
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: cnn, namespace: sample}
spec:
  hosts: [edition.cnn.com]
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: https, protocol: HTTPS}]
  resolution: DNS
---
apiVersion: networking.istio.io/v1alpha3
kind: VirtualService
metadata: {name: cnn, namespace: sample}
spec:
  hosts: [edition.cnn.com]
  http: [{match: [{port: 80}], route: [{destination: {host: edition.cnn.com, port: {number: 443}}}]}]
  tls: [{match: [{port: 443, sniHosts: [edition.cnn.com]}], route: [{destination: {host: edition.cnn.com, port: {number: 443}}}]}]
---
apiVersion: networking.istio.io/v1alpha3
kind: DestinationRule
metadata: {name: cnn, namespace: sample}
spec:
  host: edition.cnn.com
  trafficPolicy:
    portLevelSettings: [{port: {number: 443}, tls: {mode: SIMPLE, caCertificates: system}}]
)");
  EXPECT_THAT(Codes(result), testing::Not(testing::Contains(testing::HasSubstr("WT5"))))
      << testing::PrintToString(Codes(result));
}

// Istio's tasks of tokens, of external authorization by hosts with their port, and of mutual TLS for one workload.
TEST(Lint, PoliciesOfIstiosOwnTasksAreNoFault) {
  const LintResult result = LintManifest("policies", R"(
apiVersion: security.istio.io/v1beta1
kind: PeerAuthentication
metadata: {name: default, namespace: sample}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1beta1
kind: PeerAuthentication
metadata: {name: helloworld, namespace: sample}
spec: {selector: {matchLabels: {app: helloworld}}, mtls: {mode: STRICT}, portLevelMtls: {5000: {mode: PERMISSIVE}}}
---
apiVersion: security.istio.io/v1beta1
kind: RequestAuthentication
metadata: {name: tokens, namespace: sample}
spec: {selector: {matchLabels: {app: helloworld}}, jwtRules: [{issuer: testing@secure.istio.io, jwks: '{"keys": []}'}]}
---
apiVersion: security.istio.io/v1beta1
kind: AuthorizationPolicy
metadata: {name: require-jwt, namespace: sample}
spec:
  selector: {matchLabels: {app: helloworld}}
  rules:
    - from: [{source: {requestPrincipals: ["testing@secure.istio.io/testing@secure.istio.io"]}}]
      to: [{operation: {paths: [/hello, /api/*, "*.html"], hosts: ["helloworld.sample", "helloworld.sample:*"]}}]
)",
                                         {"cluster1", "cluster2"});
  EXPECT_THAT(Codes(result), testing::IsEmpty());
}

// Istio's sample of an external authorizer answers 403 to who brings no header: it is an application that answers. And
// an account that is written as an empty text is the default one, as Kubernetes has it.
TEST(Lint, AnswersOfAnAuthorizerAndEmptyAccountsAreNoFault) {
  const LintResult result = LintManifest("authorizer", R"(
apiVersion: v1
kind: Service
metadata: {name: ext-authz, namespace: sample}
spec: {selector: {app: ext-authz}, ports: [{name: http, port: 8000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ext-authz, namespace: sample}
spec:
  selector: {matchLabels: {app: ext-authz}}
  template:
    metadata: {labels: {app: ext-authz}}
    spec:
      serviceAccountName: ""
      containers: [{name: ext-authz, image: gcr.io/istio-testing/ext-authz:latest, ports: [{containerPort: 8000}]}]
)");
  std::vector<std::string> others;
  for (const std::string& code : Codes(result)) {
    if (code.find("is not in cluster2") == std::string::npos) others.push_back(code);
  }
  EXPECT_THAT(others, testing::IsEmpty());
}

// What counts is how the proxies that ask have the server, by its port's name, appProtocol or a DestinationRule; one
// that is asked by plain HTTP needs none of it.
TEST(Lint, AnAuthorizerOfGrpcIsAskedByHttp2WhateverSaysSo) {
  const auto message = [](const std::string& name, const std::string& kind, const std::string& port,
                          const std::string& rule = "") {
    const LintResult result = LintManifest("authorizer-" + name,
                                           fmt::format(R"(
apiVersion: v1
kind: ConfigMap
metadata: {{name: istio, namespace: istio-system}}
data:
  mesh: |
    extensionProviders: [{{name: gate, {}: {{service: gate.sample.svc.cluster.local, port: 9000}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: gate, namespace: sample}}
spec: {{selector: {{app: gate}}, ports: [{{port: 9000, {}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: gate, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: gate}}}}
  template:
    metadata: {{labels: {{app: gate}}}}
    spec: {{containers: [{{name: gate, image: example/gate, ports: [{{containerPort: 9000}}]}}]}}
---
apiVersion: security.istio.io/v1beta1
kind: AuthorizationPolicy
metadata: {{name: ask-first, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: helloworld}}}}
  action: CUSTOM
  provider: {{name: gate}}
  rules: [{{}}]
{})",
                                                       kind, port, rule),
                                           {"cluster1", "cluster2"});
    return FindingOf(result, "WT754") == nullptr ? std::string() : FindingOf(result, "WT754")->message;
  };
  EXPECT_THAT(message("http", "envoyExtAuthzGrpc", "name: http-gate"),
              testing::HasSubstr("action CUSTOM: provider gate is of gRPC, and port 9000 of "
                                 "gate.sample.svc.cluster.local is HTTP: helloworld-v1-"));
  EXPECT_THAT(message("unsaid", "envoyExtAuthzGrpc", "name: gate"), testing::HasSubstr("says no protocol"));
  EXPECT_EQ(message("grpc", "envoyExtAuthzGrpc", "name: grpc-gate"), "");
  EXPECT_EQ(message("app-protocol", "envoyExtAuthzGrpc", "name: http-gate, appProtocol: grpc"), "");
  EXPECT_EQ(message("plain", "envoyExtAuthzHttp", "name: http-gate"), "");
  EXPECT_EQ(message("upgraded", "envoyExtAuthzGrpc", "name: http-gate", R"(---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: {name: gate, namespace: sample}
spec:
  host: gate.sample.svc.cluster.local
  trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE}}}
)"),
            "");
}

// What a filter asks through istiod's own cluster depends on the Service's port; through one that an EnvoyFilter adds,
// on what that says of HTTP/2.
TEST(Lint, AFilterAsksGrpcByHttp2WhateverSaysSo) {
  const auto found = [](const std::string& name, const std::string& port, const std::string& asked,
                        const std::string& options) {
    const LintResult result = LintManifest("limits-" + name,
                                           fmt::format(R"(
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: added, namespace: sample}}
spec:
  workloadSelector: {{labels: {{app: helloworld}}}}
  configPatches:
  - applyTo: CLUSTER
    match: {{context: SIDECAR_INBOUND}}
    patch:
      operation: ADD
      value:
        name: limiter
        type: STRICT_DNS
        connect_timeout: 1s
        load_assignment:
          cluster_name: limiter
          endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: limiter.sample.svc.cluster.local, port_value: 8081}}}}}}}}]}}]
{}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: limits, namespace: sample}}
spec:
  workloadSelector: {{labels: {{app: helloworld}}}}
  configPatches:
  - applyTo: HTTP_FILTER
    match: {{context: SIDECAR_INBOUND, listener: {{filterChain: {{filter: {{name: envoy.filters.network.http_connection_manager}}}}}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: envoy.filters.http.ratelimit
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
          domain: x
          rate_limit_service: {{transport_api_version: V3, grpc_service: {{envoy_grpc: {{cluster_name: "{}"}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: limiter, namespace: sample}}
spec: {{selector: {{app: limiter}}, ports: [{{port: 8081, name: {}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: limiter, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: limiter}}}}
  template:
    metadata: {{labels: {{app: limiter}}}}
    spec: {{containers: [{{name: limiter, image: example/limiter, ports: [{{containerPort: 8081}}]}}]}}
)",
                                                       options, asked, port),
                                           {"cluster1", "cluster2"});
    const Finding* const finding = FindingOf(result, "WT756");
    return finding == nullptr ? std::string() : finding->object + ": " + finding->message;
  };
  const std::string own = "outbound|8081||limiter.sample.svc.cluster.local";
  const std::string http2 =
      "        typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {\"@type\": "
      "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: "
      "{http2_protocol_options: {}}}}";
  EXPECT_THAT(found("added", "grpc", "limiter", ""),
              testing::HasSubstr("EnvoyFilter sample/added: adds cluster limiter without HTTP/2, and patch 1 of "
                                 "EnvoyFilter sample/limits asks gRPC there: helloworld-v1-"));
  EXPECT_EQ(found("added-http2", "grpc", "limiter", http2), "");
  EXPECT_EQ(found("added-old", "grpc", "limiter", "        http2_protocol_options: {}"), "");
  EXPECT_THAT(found("http", "http-limits", own, ""),
              testing::HasSubstr("EnvoyFilter sample/limits: patch 1: asks gRPC through cluster " + own +
                                 ", whose port is HTTP: helloworld-v1-"));
  EXPECT_EQ(found("grpc", "grpc-limits", own, ""), "");
}

// An application that is asked by HTTP beside TCP has requests whose tokens are read.
TEST(Lint, TokensAreReadWhereSomePortIsOfHttp) {
  const auto found = [](const std::string& name, const std::string& ports) {
    const LintResult result = LintManifest("tokens-" + name, fmt::format(R"(
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {{name: tokens, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: ledger}}}}
  jwtRules: [{{issuer: me@example.com, jwks: '{{"keys": []}}'}}]
---
apiVersion: v1
kind: Service
metadata: {{name: ledger, namespace: sample}}
spec: {{selector: {{app: ledger}}, ports: [{}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: ledger, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: ledger}}}}
  template:
    metadata: {{labels: {{app: ledger}}}}
    spec: {{containers: [{{name: ledger, image: example/ledger}}]}}
)",
                                                                         ports));
    return std::pair(FindingOf(result, "WT757") != nullptr, FindingOf(result, "WT575") != nullptr);
  };
  EXPECT_EQ(found("tcp", "{name: tcp, port: 9000}"), std::pair(true, false));
  EXPECT_EQ(found("both", "{name: tcp, port: 9000}, {name: http, port: 80}"), std::pair(false, true));
  EXPECT_EQ(found("unsaid", "{name: main, port: 9000}"), std::pair(false, true));
}

// HTTP is answered 403, and connections of TCP are closed: both are what the policy is for.
TEST(Lint, AConnectionThatAPolicyRefusesIsNoFailedRequest) {
  const auto findings = [](const std::string& name, const std::string& account) {
    return LintManifest("closed-" + name,
                        fmt::format(R"(
apiVersion: v1
kind: Service
metadata: {{name: ledger, namespace: sample}}
spec: {{selector: {{app: ledger}}, ports: [{{name: tcp, port: 9000}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: ledger, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: ledger}}}}
  template:
    metadata: {{labels: {{app: ledger}}}}
    spec: {{containers: [{{name: ledger, image: example/ledger, ports: [{{containerPort: 9000}}]}}]}}
---
apiVersion: security.istio.io/v1beta1
kind: AuthorizationPolicy
metadata: {{name: ledger, namespace: sample}}
spec:
  selector: {{matchLabels: {{app: ledger}}}}
  rules: [{{from: [{{source: {{principals: [cluster.local/ns/sample/sa/{}]}}}}]}}]
)",
                                    account),
                        {"cluster1", "cluster2"});
  };
  EXPECT_THAT(Codes(findings("some", "sleep")), testing::IsEmpty());
  const LintResult all = findings("all", "nobody");
  EXPECT_EQ(FindingOf(all, "WT801"), nullptr) << testing::PrintToString(Codes(all));
  EXPECT_NE(FindingOf(all, "WT561"), nullptr) << testing::PrintToString(Codes(all));
}

// As istio.io's own example has it, under STRICT: what it hides is reached in clear text alone, and nobody said that it
// is asked for.
TEST(Lint, WhatANarrowSidecarHidesIsNotAskedFor) {
  const std::string others = R"(
apiVersion: security.istio.io/v1beta1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
---
apiVersion: v1
kind: Namespace
metadata: {name: stall, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prices, namespace: stall}
spec:
  selector: {matchLabels: {app: prices}}
  template:
    metadata: {labels: {app: prices}}
    spec: {containers: [{name: prices, image: example/prices, ports: [{containerPort: 9090}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: prices, namespace: stall}
spec: {selector: {app: prices}, ports: [{name: tcp, port: 9090}]}
---
apiVersion: networking.istio.io/v1beta1
kind: Sidecar
metadata: {name: default, namespace: sample}
spec: {egress: [{hosts: ["./*", "istio-system/*"]}]}
)";
  EXPECT_THAT(Codes(LintManifest("narrow-under-strict", others, {"cluster1", "cluster2"})), testing::IsEmpty());
}

// As istio.io has it of policies for Gateways of the Gateway API: targetRefs, which releases after 1.18 read, for a
// gateway whose Service has a port of TCP for its status.
TEST(Lint, APolicyForAGatewayOfTheGatewayApiIsNoFault) {
  const std::string folder = testing::TempDir() + "/policy-for-gateway";
  fs::create_directories(folder);
  for (const char* cluster : {"cluster1", "cluster2"}) {
    std::ofstream(folder + "/" + cluster + ".yaml") << R"(
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: sample}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: sample}
spec: {parentRefs: [{name: front}], rules: [{backendRefs: [{name: helloworld, port: 5000}]}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: partners, namespace: sample}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: front}]
  action: DENY
  rules: [{from: [{source: {remoteIpBlocks: [198.51.100.0/24]}}]}]
)";
  }
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder, "istio-1.30");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// As kube-prometheus and Argo Rollouts come: pods outside of the mesh whose NetworkPolicy admits each other, and
// Services for the pods of a controller that is not here.
TEST(Lint, WhatOtherControllersHaveIsNoFaultOfTheMeshs) {
  const LintResult result = LintManifest("controllers", R"(
apiVersion: v1
kind: Namespace
metadata: {name: monitoring, labels: {istio-injection: disabled}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: prometheus-k8s, namespace: monitoring}
spec:
  replicas: 2
  serviceName: prometheus
  selector: {matchLabels: {app.kubernetes.io/name: prometheus}}
  template:
    metadata: {labels: {app.kubernetes.io/name: prometheus}}
    spec: {containers: [{name: prometheus, image: example/prometheus, ports: [{name: http-web, containerPort: 9090}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: prometheus, namespace: monitoring}
spec: {selector: {app.kubernetes.io/name: prometheus}, ports: [{name: http-web, port: 9090, targetPort: http-web}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: prometheus-k8s, namespace: monitoring}
spec:
  podSelector: {matchLabels: {app.kubernetes.io/name: prometheus}}
  ingress: [{from: [{podSelector: {matchLabels: {app.kubernetes.io/name: prometheus}}}]}]
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: cart, namespace: sample}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: example/cart}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart-stable, namespace: sample}
spec: {selector: {app: cart}, ports: [{name: http, port: 80}]}
)",
                                         {"cluster1", "cluster2"});
  EXPECT_EQ(FindingOf(result, "WT123"), nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(FindingOf(result, "WT405"), nullptr) << testing::PrintToString(Codes(result));
}

// What many proxies refuse of one object in the same words is one finding.
TEST(Lint, ARefusalOfManyProxiesIsToldOnce) {
  const LintResult result = LintManifest("lua", R"(
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: lua, namespace: sample}
spec:
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_INBOUND, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: envoy.filters.http.lua
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, inlineCode: 'function envoy_on_request(handle)'}
)");
  std::vector<std::string> refused;
  for (const Finding& finding : result.findings) {
    if (finding.rule->code == "WT532") refused.push_back(finding.object + ": " + finding.message);
  }
  EXPECT_THAT(refused, testing::ElementsAre(testing::AllOf(testing::HasSubstr("EnvoyFilter sample/lua: "),
                                                           testing::HasSubstr("and 1 more refused LDS: "),
                                                           testing::HasSubstr("script load error"))));
}

// One cause is one finding: what keeps its pods from running, or what keeps them from being a gateway's.
TEST(Lint, AGatewayWhosePodsDoNotComeUpIsToldOnce) {
  for (const char* fault : {"gateway-image-scheme", "image-gateway-variant"}) {
    const LintResult result = LintFault(fault);
    const Finding* const found = FindingOf(result, "WT700");
    ASSERT_NE(found, nullptr) << fault;
    EXPECT_THAT(found->message, testing::HasSubstr("; nothing else is behind gateway Service istio-eastwestgateway"));
    EXPECT_EQ(FindingOf(result, "WT109"), nullptr) << fault;
  }
  const LintResult without = LintFault("gateway-not-injected");
  EXPECT_NE(FindingOf(without, "WT109"), nullptr);
  EXPECT_EQ(FindingOf(without, "WT700"), nullptr) << testing::PrintToString(Codes(without));
}

TEST(Lint, AServiceEntryOfOnePrimaryIsToldByItsHosts) {
  const LintResult result = LintFault("entry-on-one-side");
  const Finding* const found = FindingOf(result, "WT710");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->message, testing::HasSubstr("api.example.com is known to proxies in cluster1 alone: cluster2 has "
                                                 "no ServiceEntry in namespace sample, and has clients"));
}

// Another program's webhook injects nothing, and a mesh that is filled in has an injector of its own beside it.
TEST(Lint, AWebhookOfAnotherProgramKeepsNoPodFromItsSidecar) {
  const LintResult result = LintManifest("webhook", R"(
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: vault-agent-injector}
webhooks:
  - name: vault.hashicorp.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    clientConfig: {service: {name: vault-agent-injector, namespace: vault, path: /mutate, port: 443}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
)");
  EXPECT_THAT(Codes(result), testing::IsEmpty());
  EXPECT_EQ(FindingOf(LintFault("webhook-of-nobody"), "WT109"), nullptr);
}

// Its webhook's words are enough.
TEST(Lint, AnEnvoyFilterOfAnUnknownTypeIsToldOnce) {
  const LintResult result = LintManifest("unknown-type", R"(
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: limits, namespace: sample}
spec:
  configPatches:
    - applyTo: HTTP_FILTER
      match: {context: SIDECAR_INBOUND}
      patch:
        operation: INSERT_FIRST
        value: {name: limits, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.luaa.v3.Lua}}
)");
  ASSERT_NE(FindingOf(result, "WT534"), nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(FindingOf(result, "IST0133"), nullptr) << testing::PrintToString(Codes(result));
}

// What is wrong with a gateway explains the requests that fail behind it, wherever it stands.
TEST(Lint, RequestsThatFailAreExplainedByAGatewayOutsideOfIstiosNamespace) {
  const std::string folder = testing::TempDir() + "/gateways-elsewhere";
  MeshSource source;
  for (const std::string n : {"1", "2"}) {
    fs::create_directories(folder + "/cluster" + n);
    source.clusters.push_back({"cluster" + n, {folder + "/cluster" + n}, "", "", true});
    for (const std::string& file :
         {"network" + n, std::string("istiod"), "eastwest-network" + n, std::string("expose-services"),
          std::string("sample"), std::string("helloworld-service"), "helloworld-v" + n, std::string("sleep")}) {
      std::ifstream in(kRoot + "/scenarios/manifests/" + file + ".yaml");
      std::ostringstream text;
      text << in.rdbuf();
      std::string yaml = text.str();
      if (file == "eastwest-network" + n || file == "expose-services") {
        for (size_t at = yaml.find("istio-system"); at != std::string::npos; at = yaml.find("istio-system"))
          yaml.replace(at, 12, "edge");
        if (n == "2" && file != "expose-services") yaml.replace(yaml.rfind("    topology"), 12, "    topologi");
      }
      std::ofstream(folder + "/cluster" + n + "/" + file + ".yaml") << yaml;
    }
    std::ofstream(folder + "/cluster" + n + "/edge.yaml")
        << "apiVersion: v1\nkind: Namespace\nmetadata: {name: edge}\n";
  }
  absl::StatusOr<SettledMesh> settled = BringToRest(source);
  ASSERT_TRUE(settled.ok()) << settled.status();
  const Mesh mesh(*std::move(settled));
  LintOptions options;
  options.unix_now = kNow;
  const absl::StatusOr<LintResult> result = Lint(mesh, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(FindingOf(*result, "WT101"), nullptr) << testing::PrintToString(Codes(*result));
  EXPECT_EQ(FindingOf(*result, "WT801"), nullptr) << testing::PrintToString(Codes(*result));
}

TEST(Lint, ABudgetThatLetsOnePodGoIsNoFault) {
  const std::string folder = testing::TempDir() + "/budget-of-one";
  fs::create_directories(folder);
  std::ofstream(folder + "/cluster1.yaml")
      << "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: hello, namespace: sample}\n"
         "spec: {maxUnavailable: 1, selector: {matchLabels: {app: helloworld}}}\n";
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::IsEmpty());
}

// What follows from a fault is not told as faults of their own, with remedies that mend nothing.
TEST(Lint, BlamesNeitherSubsetsNorSelectorsForAGatewayThatIsScaledToZero) {
  const LintResult result = LintFault("gateway-scaled-to-zero");
  const Finding* gateway = FindingOf(result, "WT109");
  ASSERT_NE(gateway, nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(gateway->object, "Deployment istio-system/istio-eastwestgateway");
  EXPECT_THAT(std::string(gateway->Remedy()), testing::HasSubstr("scale it up"));
  EXPECT_EQ(FindingOf(result, "WT516"), nullptr) << testing::PrintToString(Codes(result));
}

TEST(Lint, BlamesTheIstiodThatIsScaledToZeroAndNoSelector) {
  const LintResult result = LintFault("istiod-scaled-to-zero");
  const Finding* first = FindingOf(result, "WT700");
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(Codes(result), testing::Contains(testing::AllOf(testing::HasSubstr("Deployment istio-system/istiod"),
                                                              testing::HasSubstr("wants 0 replicas"))));
  EXPECT_EQ(FindingOf(result, "IST0127"), nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(FindingOf(result, "WT109"), nullptr) << testing::PrintToString(Codes(result));
}

TEST(Lint, BlamesThePolicyThatDisablesMtlsForWhatAGatewayDoesNotServe) {
  const LintResult result = LintFault("disabled-for-one-port");
  const Finding* closed = FindingOf(result, "WT516");
  ASSERT_NE(closed, nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(closed->object, "PeerAuthentication sample/helloworld");
  EXPECT_THAT(std::string(closed->Remedy()), testing::HasSubstr("PERMISSIVE"));
}

TEST(Lint, SaysWhyPodsHaveNoSidecarWhereAnotherRevisionIsAskedFor) {
  const LintResult result = LintFault("revision-of-nobody");
  const Finding* missing = FindingOf(result, "IST0103");
  ASSERT_NE(missing, nullptr) << testing::PrintToString(Codes(result));
  EXPECT_EQ(missing->object, "Namespace sample");
  EXPECT_THAT(std::string(missing->Remedy()), testing::HasSubstr("install revision 'canary'"));
}

TEST(Lint, TellsPodsThatIstiodRefusesToInject) {
  EXPECT_THAT(Codes(LintFault("annotation-invalid")),
              testing::Contains(testing::AllOf(testing::HasSubstr("WT700"), testing::HasSubstr("was not admitted"),
                                               testing::HasSubstr("excludeInboundPorts"))));
}

TEST(Lint, NamesTheVirtualServiceWhoseTimeoutFailsRequests) {
  const LintResult result = LintFault("timeout-too-short");
  const Finding* failing = FindingOf(result, "WT801");
  ASSERT_NE(failing, nullptr) << testing::PrintToString(Codes(result));
  EXPECT_THAT(failing->message, testing::HasSubstr("no answer within the route's timeout"));
  EXPECT_THAT(failing->message, testing::HasSubstr("VirtualService sample/helloworld"));
}

// An istiod that is there and does not start serves nobody.
TEST(Lint, OutlivesAnIstiodThatDoesNotStart) {
  const std::string folder = testing::TempDir() + "/istiod-fails";
  fs::create_directories(folder);
  std::ofstream(folder + "/cluster2.yaml") << "apiVersion: v1\nkind: Secret\nmetadata: {name: cacerts, namespace: "
                                              "istio-system}\nstringData: {ca-cert.pem: none, ca-key.pem: none, "
                                              "root-cert.pem: none, cert-chain.pem: none}\n";
  const absl::StatusOr<LintResult> result = LintScenario(kMainMesh, folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Codes(*result), testing::Contains(testing::HasSubstr("does not start")));
}

// Above an object or within it, as a comment; a code of no rule is bad input.
TEST(Silences, StandBesideTheObject) {
  const std::string folder = testing::TempDir() + "/silences";
  fs::create_directories(folder);
  std::ifstream in(kRoot + "/tests/check/faults/route-to-nowhere/cluster1.yaml");
  std::ostringstream fault;
  fault << in.rdbuf();
  const auto lint = [&](const std::string& comment) {
    std::ofstream(folder + "/cluster1.yaml") << comment << fault.str();
    return LintScenario(kMainMesh, folder);
  };
  const absl::StatusOr<LintResult> silent = lint("# wavetank: silence IST0101, WT537\n");
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_THAT(Codes(*silent), testing::IsEmpty());
  EXPECT_EQ(silent->silenced, 2);
  const absl::StatusOr<LintResult> other = lint("# wavetank: silence WT101\n");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->findings.size(), 2u);
  const absl::StatusOr<LintResult> wrong = lint("# wavetank: silence WT9\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), testing::HasSubstr("cluster1.yaml:1: silences WT9"));
}

TEST(Baseline, KnowsFindingsWhateverTheirLine) {
  const std::string fault = kRoot + "/tests/check/faults/route-to-nowhere";
  const absl::StatusOr<LintResult> first = LintScenario(kMainMesh, fault);
  ASSERT_TRUE(first.ok());
  const std::string path = testing::TempDir() + "/baseline.json";
  ASSERT_TRUE(WriteBaseline(path, *first).ok());
  const absl::StatusOr<std::set<std::string>> known = ReadBaseline(path);
  ASSERT_TRUE(known.ok());
  ASSERT_EQ(first->findings.size(), 2u);
  for (const Finding& finding : first->findings) EXPECT_TRUE(known->contains(finding.Fingerprint()));
  std::ofstream(path) << "{}";
  EXPECT_FALSE(ReadBaseline(path).ok());
}

// The rules' codes are promises: one each, in one order.
// Code hosts show no result without a place.
TEST(Sarif, AFindingWithoutAFileIsToldOfWhatWasChecked) {
  LintResult result;
  Finding& finding = result.findings.emplace_back();
  finding.rule = AllRules().front();
  finding.cluster = "c1";
  finding.object = "Service sample/helloworld";
  const nlohmann::ordered_json sarif = FindingsSarif(result, "1.0", "incident.wtlog");
  const nlohmann::ordered_json& place = sarif["runs"][0]["results"][0]["locations"][0];
  EXPECT_EQ(place["physicalLocation"]["artifactLocation"]["uri"], "incident.wtlog");
  EXPECT_FALSE(place["physicalLocation"].contains("region"));
  EXPECT_EQ(place["logicalLocations"][0]["fullyQualifiedName"], "Service sample/helloworld in c1");
}

TEST(Rules, HaveCodesOfTheirOwn) {
  const auto& rules = AllRules();
  ASSERT_GE(rules.size(), 60u);
  for (size_t i = 1; i < rules.size(); ++i) EXPECT_LT(rules[i - 1]->code, rules[i]->code);
  for (const Rule* rule : rules) {
    EXPECT_FALSE(rule->cause.empty()) << rule->code;
    EXPECT_FALSE(rule->remedy.empty()) << rule->code;
  }
}

}  // namespace
}  // namespace wavetank::check
