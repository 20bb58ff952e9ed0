#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/base/ip.h"
#include "scenarios/mesh/retries.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"

namespace wavetank::scenario {
namespace {

constexpr int64_t kMostBodyBytes = int64_t{1} << 40;

void RequireIssuer(const Field& f, const Scenario& scenario) {
  const std::string name = f.Text();
  for (const IssuerSpec& issuer : scenario.issuers) {
    if (issuer.name == name) return;
  }
  f.Fail(fmt::format("no issuer is named '{}'", name), "name one of the scenario's issuers");
}

TokenSpec ReadToken(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("token"), &scenario);
  TokenSpec token;
  token.issuer = f["issuer"].RequiredText();
  token.signed_by = f["signedBy"].Text();
  // A token may say that it is anybody's, but somebody has to sign it.
  if (f["signedBy"].present()) {
    RequireIssuer(f["signedBy"], scenario);
  } else if (f["issuer"].present()) {
    RequireIssuer(f["issuer"], scenario);
  }
  token.subject = f["subject"].Text();
  for (const Field& audience : f["audiences"].Items()) token.audiences.push_back(audience.Text());
  if (f["claims"].present()) token.claims = f["claims"].Json();
  token.expires = f["expires"].SignedTime(token.expires);
  if (f["notBefore"].present()) token.not_before = f["notBefore"].SignedTime(0ns);
  token.header = absl::AsciiStrToLower(f["header"].Text());
  token.param = f["param"].Text();
  return token;
}

// Whether its clients send messages over connections that are, or have become, none of HTTP.
bool Streams(const Field& flow) {
  const std::string protocol = flow["protocol"].Text();
  return protocol == "tcp" || protocol == "websocket";
}

void ReadTrailers(const Field& trailers, const Field& flow, FlowSpec* out) {
  for (const auto& [name, value] : trailers.Entries()) out->trailers[absl::AsciiStrToLower(name)] = value.Text();
  if (Streams(flow)) trailers.Fail("are of HTTP", "leave them out");
  const std::string protocol = flow["protocol"].Text("http");
  if (protocol == "http1.0") trailers.Fail("are nothing that HTTP/1.0 knows", "leave them out");
  // In HTTP/1.1 a body in chunks alone has them.
  if (out->body_bytes > 0 && protocol == "http")
    trailers.Fail("come behind a body in chunks, and this one tells its length", "leave out body, or say http2");
}

void ReadBody(const Field& body, const Field& flow, FlowSpec* out) {
  CheckMapping(body, MappingNamed("body"), nullptr);
  out->body_bytes = body["bytes"].Integer(1, 1, kMostBodyBytes);
  out->body_over = body["over"].Time(0ns);
  out->body_pieces = body["pieces"].Integer(0, 1, 1000);
  if (body["pieces"].present() && out->body_over == Duration::zero())
    body["pieces"].Fail("come one after the other in no time", "say over which time: over: 2s");
  if (!flow["method"].present()) out->method = "POST";
  if (Streams(flow)) body.Fail("is of HTTP", "leave it out");
  for (const char* name : {"content-length", "transfer-encoding"}) {
    if (out->headers.contains(name))
      body.Fail(fmt::format("has its length beside the header {}", name), "leave out one of them");
  }
}

// As curl: the name of the URL is asked for and wanted, an address is no name.
sim::ClientTls ReadTls(const Field& f, const FlowSpec& flow) {
  CheckMapping(f, MappingNamed("tls"), nullptr);
  sim::ClientTls tls;
  tls.server_name = f["serverName"].Text(IsIpAddress(flow.host) ? "" : flow.host);
  tls.trusts = f["trusts"].Text();
  tls.certificate = f["certificate"].Text();
  tls.insecure = f["insecure"].Flag(false);
  if (tls.insecure && f["trusts"].present())
    f["trusts"].Fail("nobody looks at what the server shows", "leave out insecure, or trusts");
  if (tls.server_name.empty() && !tls.insecure)
    f.Fail(fmt::format("{} is no name that a certificate could be for", flow.host),
           "say serverName, or insecure: true");
  if (flow.http == "http1.0") f.Fail("is not told of HTTP/1.0 here", "leave out tls, or protocol");
  return tls;
}

}  // namespace

FlowSpec ReadFlow(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("flow"), &scenario);
  FlowSpec flow;
  flow.name = f["name"].RequiredText();
  const Field from = f["from"];
  CheckMapping(from, ClientRow(), &scenario);
  flow.from_cluster = from["cluster"].Text();
  flow.from_namespace = from["namespace"].Text("default");
  flow.from_app = from["app"].Text();
  const Field to = f["to"];
  const std::string target = to.RequiredText();
  const size_t colon = target.rfind(':');
  flow.host = target.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string port = target.substr(colon + 1);
    if (!absl::SimpleAtoi(port, &flow.port) || flow.port < 1 || flow.port > 65535)
      to.Fail(fmt::format("'{}' is no port", port), "write host:port, helloworld.sample:5000");
  }
  flow.path = f["path"].Text("/");
  if (!flow.path.starts_with('/') && flow.path != "*")
    f["path"].Fail(fmt::format("'{}' is no path of a request", flow.path), "begin it with a slash: /hello");
  const std::string protocol = f["protocol"].Text();
  flow.tcp = protocol == "tcp";
  if (!flow.tcp && protocol != "http") flow.http = protocol;
  flow.method = f["method"].Text(flow.http == "grpc" ? "POST" : "GET");
  if (flow.http == "grpc" && flow.method != "POST")
    f["method"].Fail(fmt::format("'{}' is not gRPC's, whose calls are POSTs", flow.method), "leave it out");
  for (const auto& [name, value] : f["headers"].Entries()) flow.headers[absl::AsciiStrToLower(name)] = value.Text();
  if (f["token"].present()) flow.token = ReadToken(f["token"], scenario);
  if (f["tls"].present()) flow.tls = ReadTls(f["tls"], flow);
  if (const Field body = f["body"]; body.present()) ReadBody(body, f, &flow);
  if (const Field trailers = f["trailers"]; trailers.present()) ReadTrailers(trailers, f, &flow);
  const bool multiplexes = flow.http == "http2" || flow.http == "grpc";
  flow.keep_alive = f["connections"].Text(multiplexes ? "keep-alive" : "new") == "keep-alive";
  if (flow.keep_alive && flow.http == "http1.0")
    f["connections"].Fail("HTTP/1.0 ends a connection with its answer", "leave it out");
  flow.rate_per_kilosecond = f["rate"].RatePerKilosecond(flow.rate_per_kilosecond);
  flow.poisson = f["arrivals"].Text() == "poisson";
  if (const Field ramp = f["ramp"]; ramp.present()) {
    CheckMapping(ramp, MappingNamed("ramp"), &scenario);
    flow.ramp = ramp["over"].Time(0ns);
    flow.ramp_to_per_kilosecond = ramp["to"].RatePerKilosecond(0);
  }
  if (const Field loop = f["closedLoop"]; loop.present()) {
    CheckMapping(loop, MappingNamed("closedLoop"), &scenario);
    flow.users = loop["users"].Integer(1, 1, 100'000);
    flow.think = loop["think"].Time(0ns);
    if (f["rate"].present() || f["ramp"].present() || f["arrivals"].present())
      loop.Fail("is no rate: users wait for answers", "leave out rate, arrivals and ramp, or closedLoop");
  }
  flow.timeout = f["timeout"].Time(0ns);
  if (f["timeout"].present() && Streams(f)) f["timeout"].Fail("is of HTTP", "leave it out");
  CheckRetries(f["retries"]);
  if (f["retries"].present()) flow.retries = f["retries"].Json();
  // One stream at least, with a message as often as the rate says.
  if (Streams(f) && flow.keep_alive && flow.users == 0) {
    flow.users = 1;
    flow.think = PeriodOf(flow.rate_per_kilosecond);
  }
  return flow;
}

Traffic ReadTraffic(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("traffic"), &scenario);
  Traffic t;
  t.flow = f["flow"].Text();
  t.requests = f["requests"].Integer(0, 1, 10'000'000);
  t.rate_per_kilosecond = f["rate"].RatePerKilosecond(0);
  return t;
}

}  // namespace wavetank::scenario
