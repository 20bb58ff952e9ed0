#include "oracles/envoy/curl_client.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::envoydiff {
namespace {

size_t Append(char* data, size_t size, size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

// curl knows the names of two protocols; a mesh has more.
CURLcode OfferProtocols(CURL*, void* context, void* names) {
  const auto& wire = *static_cast<const std::string*>(names);
  SSL_CTX_set_alpn_protos(static_cast<SSL_CTX*>(context), reinterpret_cast<const unsigned char*>(wire.data()),
                          static_cast<unsigned>(wire.size()));
  return CURLE_OK;
}

long VersionRange(const ClientTls& tls) {
  constexpr long kMin[] = {CURL_SSLVERSION_TLSv1_0, CURL_SSLVERSION_TLSv1_1, CURL_SSLVERSION_TLSv1_2,
                           CURL_SSLVERSION_TLSv1_3};
  constexpr long kMax[] = {CURL_SSLVERSION_MAX_TLSv1_0, CURL_SSLVERSION_MAX_TLSv1_1, CURL_SSLVERSION_MAX_TLSv1_2,
                           CURL_SSLVERSION_MAX_TLSv1_3};
  return kMin[tls.lowest_version & 3] | kMax[tls.highest_version & 3];
}

}  // namespace

class CurlClient::Handle {
 public:
  Handle(const Requests& requests, const Secrets& secrets) : requests_(requests), curl_(curl_easy_init()) {
    const size_t colon = requests.to.rfind(':');
    const std::string ip = requests.to.substr(0, colon), port = requests.to.substr(colon + 1);
    const bool named = requests.tls && !requests.tls->sni.empty();
    const std::string host = named ? requests.tls->sni : ip;
    Set(CURLOPT_URL, fmt::format("{}://{}:{}/", requests.tls ? "https" : "http", host, port).c_str());
    places_ = curl_slist_append(nullptr, fmt::format("{}:{}:{}:{}", host, port, ip, port).c_str());
    Set(CURLOPT_CONNECT_TO, places_);
    if (!requests.from.empty()) Set(CURLOPT_INTERFACE, ("host!" + requests.from).c_str());
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(!requests.http2 ? CURL_HTTP_VERSION_1_1
                                                : requests.tls  ? CURL_HTTP_VERSION_2TLS
                                                                : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
    Set(CURLOPT_FORBID_REUSE, requests.keep_alive ? 0L : 1L);
    Set(CURLOPT_TIMEOUT, 60L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_PROXY, "");
    Set(CURLOPT_WRITEFUNCTION, Append);
    Set(CURLOPT_HEADERFUNCTION, Append);
    if (requests.tls) SpeakTls(*requests.tls, secrets);
  }
  ~Handle() {
    curl_easy_cleanup(curl_);
    curl_slist_free_all(places_);
  }

  HttpAnswer Ask(std::string_view path, const std::vector<std::pair<std::string, std::string>>& headers) {
    std::string body;
    curl_slist* lines = curl_slist_append(nullptr, fmt::format("Host: {}", requests_.host).c_str());
    bool has_length = false;
    for (const auto& [name, value] : headers) {
      if (name == "content-length") {
        body.assign(std::strtoul(value.c_str(), nullptr, 10), 'x');
        has_length = true;
        continue;
      }
      // A header without a value is written with a semicolon.
      lines = curl_slist_append(lines, (value.empty() ? name + ";" : name + ": " + value).c_str());
    }
    if (requests_.grpc) body = kEmptyMessage;
    for (const char* own : {"Expect:", "Accept:", "User-Agent:", "Content-Type:"}) {
      bool said = false;
      for (const auto& [name, value] : headers) said |= curl_strnequal(name.c_str(), own, name.size()) != 0;
      if (!said) lines = curl_slist_append(lines, own);
    }
    HttpAnswer answer;
    Set(CURLOPT_REQUEST_TARGET, std::string(path).c_str());
    Set(CURLOPT_NOBODY, requests_.method == "HEAD" ? 1L : 0L);
    const bool sends = has_length || requests_.grpc;
    if (sends) {
      // Together with the head: libcurl 7.88 loses an answer that comes while it still reads what to send.
      Set(CURLOPT_POST, 1L);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      Set(CURLOPT_POSTFIELDS, body.data());
      if (!has_length) lines = curl_slist_append(lines, "Content-Length:");
    }
    Set(CURLOPT_HTTPHEADER, lines);
    if (!sends && requests_.method != "HEAD") Set(CURLOPT_HTTPGET, 1L);
    Set(CURLOPT_CUSTOMREQUEST, requests_.method.c_str());
    Set(CURLOPT_WRITEDATA, &answer.body);
    Set(CURLOPT_HEADERDATA, &answer.head);
    ChooseVersion();
    const CURLcode result = curl_easy_perform(curl_);
    curl_slist_free_all(lines);
    if (result != CURLE_OK && answer.head.empty()) return {};
    long code = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
    curl_off_t promised = 0;
    curl_easy_getinfo(curl_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &promised);
    // A part of an answer is none. One that came early is whole, whatever became of its request.
    if (result != CURLE_OK && promised > static_cast<curl_off_t>(answer.body.size())) return {};
    answer.code = static_cast<int>(code);
    answer.head = "\r\n" + answer.head;  // as of a first line that is none of its headers
    return answer;
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(curl_, option, value);
  }
  void SetBlob(CURLoption option, const std::string& text) {
    curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl_, option, &blob);
  }

  // A connection in clear text speaks HTTP/2 from its first byte; asked again on one that stands, libcurl 7.88 begins
  // it anew and fails. One that the other side has closed is not used.
  void ChooseVersion() {
    if (!requests_.http2 || requests_.tls) return;
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(curl_, CURLINFO_ACTIVESOCKET, &socket);
    char byte = 0;
    const bool stands = socket != CURL_SOCKET_BAD && requests_.keep_alive &&
                        recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    Set(CURLOPT_FRESH_CONNECT, stands ? 0L : 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(stands ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
  }

  void SpeakTls(const ClientTls& tls, const Secrets& secrets) {
    for (const std::string& name : tls.alpn) alpn_ += static_cast<char>(name.size()) + name;
    Set(CURLOPT_SSL_CTX_FUNCTION, OfferProtocols);
    Set(CURLOPT_SSL_CTX_DATA, &alpn_);
    Set(CURLOPT_SSLVERSION, VersionRange(tls));
    Set(CURLOPT_SSL_VERIFYHOST, 0L);
    const auto root = secrets.find(tls.root), own = secrets.find(tls.certificate);
    Set(CURLOPT_SSL_VERIFYPEER, root == secrets.end() ? 0L : 1L);
    if (root != secrets.end()) SetBlob(CURLOPT_CAINFO_BLOB, root->second.secret.trusted_ca->ToPem());
    if (own == secrets.end()) return;
    SetBlob(CURLOPT_SSLCERT_BLOB, x509::ToPem(own->second.secret.certificate->certificates));
    SetBlob(CURLOPT_SSLKEY_BLOB, own->second.key_pem);
  }

  const Requests& requests_;
  CURL* const curl_;
  curl_slist* places_ = nullptr;
  std::string alpn_;
};

CurlClient::CurlClient(const Requests& requests, const Secrets& secrets)
    : handle_(std::make_unique<Handle>(requests, secrets)) {}
CurlClient::~CurlClient() = default;

HttpAnswer CurlClient::Ask(std::string_view path, const std::vector<std::pair<std::string, std::string>>& headers) {
  return handle_->Ask(path, headers);
}

}  // namespace wavetank::envoydiff
