(ns tique.elle
  "Asks Elle for its verdict on list-append histories.

  Prints one map per file and model, {:file, :model, :valid, :anomalies}, and exits
  with 0 if every history is valid under every model, with 1 if one is not, and with 2
  if Elle cannot tell or cannot check."
  (:require [clojure.string :as str]
            [elle.list-append :as list-append]
            [jepsen.history :as h]
            [tique.history :as history])
  (:gen-class))

(def usage
  "lein run [--model MODEL]... [--explain] FILE...")

(defn parse
  "Returns the models, whether to explain, and the files of a command line."
  [arguments]
  (loop [[argument & others] arguments
         parsed {:models [], :files [], :explain false}]
    (cond
      (nil? argument)
      (cond-> parsed
        (empty? (:models parsed)) (assoc :models [:strong-snapshot-isolation]))

      (= "--explain" argument)
      (recur others (assoc parsed :explain true))

      (= "--model" argument)
      (if (seq others)
        (recur (rest others) (update parsed :models conj (keyword (first others))))
        (throw (ex-info "--model needs a model" {})))

      (str/starts-with? argument "--")
      (throw (ex-info (str "unknown option " argument) {}))

      :else
      (recur others (update parsed :files conj argument)))))

(defn indexed
  "Returns operations as a history whose pairs are known before Elle asks for them:
  otherwise Elle 0.2.7 waits for ever on a machine with two cores."
  [operations]
  (-> operations
      (h/history {:have-indices? true, :dense-indices? true})
      h/ensure-pair-index))

(defn verdict
  "Returns Elle's verdict on a history under a model."
  [file history model]
  (let [result (try
                 (list-append/check {:consistency-models [model]} history)
                 (catch Exception error
                   {:valid? :unknown, :anomalies {}, :error (ex-message error)}))]
    (cond-> {:file file
             :model model
             :valid (:valid? result)
             :anomalies (vec (sort (:anomaly-types result)))
             :explanation (:anomalies result)}
      (:error result) (assoc :error (:error result)))))

(defn exit-status
  "Returns 0 if all are valid, 1 if one is not, else 2."
  [verdicts]
  (let [valid (set (map :valid verdicts))]
    (cond
      (contains? valid false) 1
      (= #{true} valid) 0
      :else 2)))

(defn check
  "Prints the verdicts on some files as they come, and returns them."
  [{:keys [models files explain]}]
  (vec
    (for [file files
          :let [history (indexed (history/read file))]
          model models]
      (let [{:keys [explanation] :as each} (verdict file history model)]
        (prn (dissoc each :explanation))
        (flush)
        (when explain
          (binding [*out* *err*]
            (prn explanation)))
        each))))

(defn -main
  [& arguments]
  (let [status (try
                 (let [{:keys [files] :as parsed} (parse arguments)]
                   (when (empty? files)
                     (throw (ex-info "no file is named" {})))
                   (exit-status (check parsed)))
                 (catch Exception error
                   (binding [*out* *err*]
                     (println (ex-message error))
                     (println usage))
                   2))]
    (shutdown-agents)
    (System/exit status)))
