#include "fakes/kube/http/transport/request_head.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <utility>

namespace wavetank::fakekube::http {
namespace {

// A client that writes and names no field manager is known by its User-Agent (apiserver: pkg/endpoints/handlers,
// managerOrUserAgent). Put into the query, it is part of what a log holds.
std::string WithFieldManager(const Request& request, std::string_view user_agent) {
  constexpr size_t kLongest = 128;
  const bool writes = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  const bool applies = request.content_type.starts_with("application/apply-patch");  // must say it
  if (!writes || applies || request.query.find("fieldManager=") != std::string::npos) return request.query;
  std::string name;
  for (const char c : user_agent.substr(0, user_agent.find('/'))) {
    if (name.size() < kLongest && c > ' ' && c < 0x7f) name += c;
  }
  // What would have to be escaped is nobody's name.
  if (name.empty() || name.find_first_of("&#%+=?") != std::string::npos) return request.query;
  return fmt::format("{}{}fieldManager={}", request.query, request.query.empty() ? "" : "&", name);
}

// apiserver: pkg/endpoints/filters/impersonation.go, buildImpersonationRequests().
Impersonation ReadImpersonation(const HeadersByName& headers) {
  constexpr std::string_view kExtra = "impersonate-extra-";
  Impersonation out;
  const auto first = [&](std::string_view name) {
    const auto it = headers.find(name);
    return it == headers.end() ? std::string() : it->second.front();
  };
  out.user = first("impersonate-user");
  out.uid = first("impersonate-uid");
  if (const auto it = headers.find("impersonate-group"); it != headers.end()) out.groups = it->second;
  for (auto it = headers.lower_bound(kExtra); it != headers.end() && it->first.starts_with(kExtra); ++it) {
    const std::string key = it->first.substr(kExtra.size());
    std::vector<std::string>& values = out.extra[PercentDecode(key).value_or(key)];
    values.insert(values.end(), it->second.begin(), it->second.end());
  }
  return out;
}

}  // namespace

ClientName VerifiedClient(SSL* ssl) {
  ClientName out;
  if (ssl == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return out;
  const std::unique_ptr<X509, decltype(&X509_free)> leaf(SSL_get1_peer_certificate(ssl), &X509_free);
  if (leaf == nullptr) return out;
  const X509_NAME* subject = X509_get_subject_name(leaf.get());
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    unsigned char* bytes = nullptr;
    const int size = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(entry));
    if (size < 0) continue;
    std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    OPENSSL_free(bytes);
    if (text.find('\0') != std::string::npos) return {};
    const int field = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (field == NID_commonName)
      out.user = std::move(text);
    else if (field == NID_organizationName)
      out.groups.push_back(std::move(text));
  }
  return out;
}

Request ReadHead(std::string method, std::string_view target, const HeadersByName& headers, const ClientName& client) {
  const auto header = [&](std::string_view name) {
    const auto it = headers.find(name);
    return it == headers.end() ? std::string() : it->second.front();
  };
  Request request;
  request.method = std::move(method);
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  request.content_type = header("content-type");
  request.accept = header("accept");
  request.authorization = header("authorization");
  request.impersonate = ReadImpersonation(headers);
  const std::string user_agent = header("user-agent");
  request.query = WithFieldManager(request, user_agent);
  // apiserver: pkg/endpoints/handlers/negotiation, isPrettyPrint(): at these programs people look.
  const bool by_hand =
      user_agent.starts_with("curl") || user_agent.starts_with("Wget") || user_agent.starts_with("Mozilla/5.0");
  if (by_hand && request.query.find("pretty=") == std::string::npos)
    request.query += request.query.empty() ? "pretty=true" : "&pretty=true";
  request.certificate_user = client.user;
  request.certificate_groups = client.groups;
  return request;
}

}  // namespace wavetank::fakekube::http
