#include "fakes/kube/http/message/reason_phrase.h"

#include <map>

namespace wavetank::fakekube::http {

std::string_view ReasonPhrase(int code) {
  static const auto* const kReasons = new std::map<int, std::string_view>{{200, "OK"},
                                                                          {201, "Created"},
                                                                          {202, "Accepted"},
                                                                          {204, "No Content"},
                                                                          {206, "Partial Content"},
                                                                          {301, "Moved Permanently"},
                                                                          {302, "Found"},
                                                                          {303, "See Other"},
                                                                          {304, "Not Modified"},
                                                                          {307, "Temporary Redirect"},
                                                                          {308, "Permanent Redirect"},
                                                                          {400, "Bad Request"},
                                                                          {401, "Unauthorized"},
                                                                          {403, "Forbidden"},
                                                                          {404, "Not Found"},
                                                                          {405, "Method Not Allowed"},
                                                                          {408, "Request Timeout"},
                                                                          {409, "Conflict"},
                                                                          {413, "Payload Too Large"},
                                                                          {426, "Upgrade Required"},
                                                                          {429, "Too Many Requests"},
                                                                          {431, "Request Header Fields Too Large"},
                                                                          {500, "Internal Server Error"},
                                                                          {501, "Not Implemented"},
                                                                          {502, "Bad Gateway"},
                                                                          {503, "Service Unavailable"},
                                                                          {504, "Gateway Timeout"}};
  const auto it = kReasons->find(code);
  return it == kReasons->end() ? "Unknown" : it->second;
}

}  // namespace wavetank::fakekube::http
