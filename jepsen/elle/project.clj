(defproject tique-elle "0.1.0"
  :description "Elle's verdicts on histories that tique's runs recorded"
  :license {:name "Apache-2.0"
            :url "https://www.apache.org/licenses/LICENSE-2.0"}
  :dependencies [[org.clojure/clojure "1.12.5"]
                 [elle "0.2.7"]
                 [io.jepsen/history "0.1.8"]
                 ; Elle logs through it and does not name it.
                 [spootnik/unilog "0.7.32"
                  :exclusions [com.fasterxml.jackson.core/jackson-core]]]
  :main tique.elle
  :jvm-opts ["-Djava.awt.headless=true" "-Xmx2g"])
